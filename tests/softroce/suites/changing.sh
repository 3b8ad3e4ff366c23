#!/usr/bin/env bash
# Sessions whose nodes come and go, and whose links are made when they are needed and let go when they are idle, over verbs in
# both drivers: the nodes are threads of one process on the addresses of four devices, then processes that are killed and stopped. Those
# that change also with lanes to nodes and to workers.
source tests/softroce/lib/suite.sh

switched 4 9000
for driver in rxe siw; do
  step "$driver over a switch"
  rdma_over "$driver" {1..4}
  before=$(resources)
  for ends in workers both; do
    TEST_LANE_ENDS=$ends on_addresses 4 passes changing_session_test 'Transports/*' 20
    expect_resources "$before"
  done
  on_addresses 4 passes links_on_demand_test 'Transports/*' 13
  expect_resources "$before"
  on_addresses 4 passes idle_links_test 'Transports/*' 7
  expect_resources "$before"
  for ends in workers both; do
    TEST_LANE_ENDS=$ends on_addresses 4 passes changing_session_process_test 'Transports/*' 3
    expect_resources "$before"
  done
  for node in 1 2 3 4; do rdma link delete "$driver$node"; done
done
