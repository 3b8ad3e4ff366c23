#!/usr/bin/env bash
# Connections break while both processes live: 100 in a row, control connections and queue pairs, in both drivers. No query is
# lost, and nothing is left of what has broken.
source tests/softroce/lib/suite.sh

# --quick: the hundred once only, over rxe.
declare -A cases=([rxe]='*' [siw]=$(or_quick '*' '-*a_hundred*')) least=([rxe]=7 [siw]=$(or_quick 7 6))

switched 2 9000
for driver in rxe siw; do
  step "$driver over a switch"
  rdma_over "$driver" 1 2
  before=$(resources)
  on_addresses 2 passes mending_test "${cases[$driver]}" "${least[$driver]}"
  # Frames over verbs are not encrypted; and the third endpoint of a test has no device of its own.
  on_addresses 2 passes channel_mending_test '-*goes_on_with_tls*:*is_known_to_be*' 10
  expect_resources "$before"
  for node in 1 2; do rdma link delete "$driver$node"; done
done
