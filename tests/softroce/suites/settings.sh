# Settings that change what a device is asked for, each by what comes of it.
source tests/softroce/lib/suite.sh

readonly shape=(--transport verbs --processes 2 --workers 1 --rows 100000 --repetitions 1)
readonly host=(--host "$(addresses_of 2)")

# refused <name> <text> <flags...>: two-stage ends with an error that says so.
refused() {
  local name=$1 text=$2 status=0
  shift 2
  "$bin/faro-lab" bench two-stage "${shape[@]}" "${host[@]}" "$@" >"$share/$name.log" 2>&1 || status=$?
  expect_failure "$*" "$status" "$text" "$share/$name.log"
}

# packets_with <mtu>: that rxe0 sends for two_stage.
packets_with() {
  local sent
  sent=$(device_counter rxe0 sent_pkts)
  two_stage "mtu$1" "${shape[@]}" "${host[@]}" --set "verbs.mtu=$1"
  packets=$(($(device_counter rxe0 sent_pkts) - sent))
}

sent_once
one_device 2
rdma_over rxe 0

step "verbs.mtu"
packets_with 256
expect_at_least "packets of 256 bytes" "$packets" $(($(link_sum mtu256 bytes_sent) / 256))
packets_with 0
expect_at_least "bytes for each packet of up to 1024" $(($(link_sum mtu0 bytes_sent) / packets)) 400
refused mtu4096 'verbs.mtu = 4096.*active MTU of 1024' --set verbs.mtu=4096

step "verbs.busy_poll"
two_stage busy "${shape[@]}" "${host[@]}" --set verbs.busy_poll=1
on_addresses 2 passes idle_test '*' 2

step "verbs.huge_pages"
refused few_pages 'nr_hugepages' --set verbs.huge_pages=1
echo 40 >/proc/sys/vm/nr_hugepages # of 2 MiB; a node takes one for each direction and one for messages
two_stage huge "${shape[@]}" "${host[@]}" --set verbs.huge_pages=1
expect_equal "huge pages left" "$(awk '/^HugePages_Free/ { print $2 }' /proc/meminfo)" 40
expect_sent_once rxe0
