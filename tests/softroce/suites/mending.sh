#!/usr/bin/env bash
# Connections break while both processes live: 100 in a row, control connections and queue pairs, in both drivers. No query is
# lost, and nothing is left of what has broken.
source tests/softroce/lib/suite.sh

switched 2 9000
for driver in rxe siw; do
  step "$driver over a switch"
  rdma_over "$driver" 1 2
  before=$(resources)
  on_addresses 2 passes mending_test '*' 7
  # Frames over verbs are not encrypted; and the third endpoint of a test has no device of its own.
  on_addresses 2 passes channel_mending_test '-*goes_on_with_tls*:*is_known_to_be*' 10
  expect_resources "$before"
  for node in 1 2; do rdma link delete "$driver$node"; done
done
