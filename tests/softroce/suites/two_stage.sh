# The two-stage benchmark, verified, with 4 processes × 2 workers, and what the drivers and the network counted; and one
# lane against the tool that measures a device.
source tests/softroce/lib/suite.sh

readonly frame=65536 frames=400
readonly shape=(--transport verbs --processes 4 --workers 2 --rows 100000 --repetitions 1)

print_result() {
  local counter
  printf '%s: %s s, connected in %s s\n' "$1" "$(result_of "$1" .seconds)" "$(result_of "$1" '.connect_seconds[0]')"
  for counter in transfers bytes_sent posts writes notifications credit_returns signalled_posts completions; do
    printf '  %-16s %s\n' "$counter" "$(link_sum "$1" "$counter")"
  done
}

sent_once
ibv_devices >"$share/ibv_devices.log" # loads the drivers of libibverbs, as any program did before on a machine that is in use

step "rxe, four addresses on one device"
one_device 4
rdma_over rxe 0
before=$(resources)
two_stage rxe_one_device "${shape[@]}" --host "$(addresses_of 4)"
print_result rxe_one_device
expect_sent_once rxe0
expect_resources "$before"
rdma link delete rxe0
ip link delete net0

switched 4 9000
unbound_as 2 1 # ib_write_bw binds its client to no address
for driver in rxe siw; do
  step "$driver over a switch"
  rdma_over "$driver" 1 2 3 4
  before=$(resources)
  sent=$(wire_bytes 4)
  two_stage "$driver" "${shape[@]}" --host "$(addresses_of 4)"
  sent=$(($(wire_bytes 4) - sent))
  print_result "$driver"
  payload=$(link_sum "$driver" bytes_sent)
  if [[ $driver == rxe ]]; then
    expect_sent_once rxe{1..4}
    packets=0
    for node in 1 2 3 4; do packets=$((packets + $(device_counter "rxe$node" sent_pkts))); done
    # Beside the rows: a header for each packet that the driver counted, where a write goes for each write, and a
    # message of 64 bytes for each notification.
    expect_within_percent 3 "bytes on the wire" "$sent" \
      $((payload + packets * 58 + $(link_sum rxe writes) * 16 + $(link_sum rxe notifications) * 64))
  else
    expect_at_least "bytes on the wire" "$sent" "$payload"
  fi
  printf 'one lane, frames of %s bytes: %s Gb/s; ib_write_bw: %s Gb/s\n' "$frame" \
    "$(link_bandwidth "${driver}_link" 1 2 "$frame" "$frames")" "$(write_bandwidth "$driver" 1 2 "$frame" "$frames")"
  expect_resources "$before"
  for node in 1 2 3 4; do rdma link delete "$driver$node"; done
done
