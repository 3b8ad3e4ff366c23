#!/usr/bin/env bash
# Packets between two devices vanish while both processes live, and nobody is told: it is noticed, and mended or named.
source tests/softroce/lib/suite.sh

switched 2 9000
for driver in rxe siw; do
  step "$driver over a switch"
  rdma_over "$driver" 1 2
  before=$(resources)
  cables=port1,port2 on_addresses 2 passes silence_test 'VerbsSilence.*' 6
  grep -h 'noticed after' "$share/silence_test.log" | sed "s/^/$driver: /" | tee -a "$share/table.txt"
  expect_resources "$before"
  for node in 1 2; do rdma link delete "$driver$node"; done
done
