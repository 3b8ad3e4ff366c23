# The transport contract suite: its two sides on two addresses of one rxe device, on two rxe devices with packets that
# cross the switch, and on two siw devices; each with other ways of notifying, and the cases with several workers also
# with a queue pair for each worker or lane. `least` has 4 receives on each side.
source tests/softroce/lib/suite.sh

# of_several_workers <variant>: the cases in which that makes a difference.
of_several_workers() { printf '*many*/%s:*transfer_marks*/%s:*stop*/%s:*vanishes*/%s\n' "$1" "$1" "$1" "$1"; }

sent_once

step "rxe, two addresses of one device"
one_device 2
rdma_over rxe 0
before=$(resources)
on_addresses 2 passes transport_contract_test '*/verbs_least_immediate' 22
expect_sent_once rxe0
expect_resources "$before"
rdma link delete rxe0
ip link delete net0

switched 2 9000
for driver in rxe siw; do
  step "$driver over a switch"
  rdma_over "$driver" 1 2
  before=$(resources)
  sent=$(wire_bytes 2)
  if [[ $driver == rxe ]]; then
    on_addresses 2 passes transport_contract_test '*/verbs_immediate:*/verbs_paper' 44
    on_addresses 2 passes transport_contract_test "$(of_several_workers verbs_worker)" 8
    expect_sent_once rxe1 rxe2
  else
    on_addresses 2 passes transport_contract_test '*/verbs_send:*/verbs_least' 44
    on_addresses 2 passes transport_contract_test "$(of_several_workers verbs_lane)" 8
  fi
  expect_at_least "bytes on the wire" $(($(wire_bytes 2) - sent)) 1000000
  expect_resources "$before"
  rdma link delete "${driver}1"
  rdma link delete "${driver}2"
done
