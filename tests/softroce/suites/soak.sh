# Clusters of four nodes that are paused, stopped and killed, and return. $1: seconds over each driver.
source tests/softroce/lib/suite.sh

switched 4 9000
for driver in rxe siw; do
  step "$driver"
  rdma_over "$driver" 1 2 3 4
  before=$(resources)
  "$bin/faro-lab" soak --seconds "${1:-120}" --seed 1 --transport verbs --host "$(addresses_of 4)" --liveness-ms 5000
  expect_resources "$before"
  for node in 1 2 3 4; do rdma link delete "$driver$node"; done
done
