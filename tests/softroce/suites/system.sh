# The system tests of shuffles and memberships in processes, their nodes on the addresses of a network, over verbs.
source tests/softroce/lib/suite.sh

one_device 4
rdma_over rxe 0
before=$(resources)
on_addresses 4 passes membership_process_test 'Transports/*' 3
on_addresses 4 passes cases_processes_test '*' 10
on_addresses 4 passes shuffle_trouble_test 'Phases/*killed*' 6
expect_resources "$before"
rdma link delete rxe0
ip link delete net0

switched 4 9000
for driver in rxe siw; do
  step "$driver over a switch"
  rdma_over "$driver" 1 2 3 4
  before=$(resources)
  on_addresses 4 passes membership_process_test 'Transports/*' 3
  on_addresses 4 passes cases_processes_test '*every_row*' 10
  on_addresses 4 passes shuffle_trouble_test 'Phases/*killed*mid*' 1
  expect_resources "$before"
  for node in 1 2 3 4; do rdma link delete "$driver$node"; done
done
