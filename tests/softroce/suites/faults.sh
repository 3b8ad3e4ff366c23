# A node is killed, stopped, cut off, paused, silent or flooded with connections, over verbs, in each phase of a query; killed, stopped,
# paused or flooded in the handshake, too.
source tests/softroce/lib/suite.sh

switched 4 9000
for driver in rxe siw; do
  step "$driver over a switch"
  rdma_over "$driver" {1..4}
  before=$(resources)
  cables=port1,port2,port3,port4 on_addresses 4 passes shuffle_trouble_test '*' 92
  expect_resources "$before"
  for node in 1 2 3 4; do rdma link delete "$driver$node"; done
done
