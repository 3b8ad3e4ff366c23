# Settings that change what a device is asked for, each by what comes of it.
source tests/softroce/lib/suite.sh

readonly shape=(--transport verbs --processes 2 --workers 1 --rows 100000 --repetitions 1)
readonly host=(--host "$(addresses_of 2)")

# refused <name> <text> <flags...>: two-stage ends with an error that says so.
refused() {
  local name=$1 text=$2 status=0
  shift 2
  "$bin/faro" bench two-stage "${shape[@]}" "${host[@]}" "$@" >"$share/$name.log" 2>&1 || status=$?
  expect_failure "$*" "$status" "$text" "$share/$name.log"
}

# packets_with <mtu>: that rxe0 sends for two_stage.
packets_with() {
  local sent
  sent=$(device_counter rxe0 sent_pkts)
  two_stage "mtu$1" "${shape[@]}" "${host[@]}" --set "verbs.mtu=$1"
  packets=$(($(device_counter rxe0 sent_pkts) - sent))
}

one_device 2
rdma_over rxe 0

step "verbs.mtu"
packets_with 256
expect_at_least "packets of 256 bytes" "$packets" $(($(link_sum mtu256 bytes_sent) / 256))
packets_with 0
expect_at_least "bytes for each packet of up to 1024" $(($(link_sum mtu0 bytes_sent) / packets)) 400
refused mtu4096 'verbs.mtu = 4096.*active MTU of 1024' --set verbs.mtu=4096
