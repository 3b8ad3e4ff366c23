# The peer of a channel is killed, stopped, cut off, paused, silent or flooded with connections, over verbs, in each phase of the channel.
source tests/softroce/lib/suite.sh

switched 3 9000
for driver in rxe siw; do
  step "$driver over a switch"
  rdma_over "$driver" {1..3}
  before=$(resources)
  cables=port1,port2,port3 on_addresses 3 passes channel_trouble_test '*' 30
  expect_resources "$before"
  for node in 1 2 3; do rdma link delete "$driver$node"; done
done
