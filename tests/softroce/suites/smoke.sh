# The runner itself: do the drivers work, do packets cross the switch, do the counters count? With the tools of rdma-core
# and perftest alone.
source tests/softroce/lib/suite.sh

readonly jumbo=9000 size=65536 count=400

step "rxe, four addresses on one device"
one_device 4
rdma_over rxe 0
ping_between 1 2 20
ping_between 4 3 20
expect_clean rxe0
expect_at_least "packets of rxe0" "$(device_counter rxe0 sent_pkts)" 160
rdma link delete rxe0
ip link delete net0

switched 2 "$jumbo"
unbound_as 2 1 # ib_write_bw binds its client to no address
for driver in rxe siw; do
  step "$driver over a switch"
  rdma_over "$driver" 1 2
  before=$(resources)
  ping_between 1 2 20
  sent=$(wire_bytes 2)
  printf 'ib_write_bw: %s Gb/s\n' "$(write_bandwidth "$driver" 1 2 "$size" "$count")"
  expect_within_percent 3 "bytes on the wire" $(($(wire_bytes 2) - sent)) "$("${driver}_wire_bytes" "$jumbo" "$size" "$count")"
  [[ $driver == siw ]] || expect_clean rxe1 rxe2
  expect_resources "$before"
  rdma link delete "${driver}1"
  rdma link delete "${driver}2"
done

step "siw has the vendor that native/transport/verbs/device.h knows it by"
rdma_over siw 1
expect_equal "vendor" "$(ibv_devinfo -d siw1 | sed -n 's/.*vendor_id:[[:space:]]*//p')" 0x626d74
rdma link delete siw1

step "rxe, by hand instead of rdma_cm"
rdma_over rxe 1 2
sent=$(device_counter rxe2 sent_pkts)
served 18515 ibv_rc_pingpong -d rxe1 -g "$(gid_index rxe1 "$(address_of 1)")" -n 100 -- \
  ibv_rc_pingpong -d rxe2 -g "$(gid_index rxe2 "$(address_of 2)")" -n 100 "$(address_of 1)"
expect_at_least "packets of rxe2" $(($(device_counter rxe2 sent_pkts) - sent)) 400
