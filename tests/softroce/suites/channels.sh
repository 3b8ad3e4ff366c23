#!/usr/bin/env bash
# Channels between endpoints over verbs, in both drivers: the tests of endpoints, the transport contract suite, and what a channel
# costs, verified.
source tests/softroce/lib/suite.sh

# The cases of the contract suite that a channel is not excused from (tests/contract/channel_pair.cc).
of_channels() {
  local filter
  printf -v filter '*.*%s*/verbs_channel:' a_new_link_has frames_of_every_size frames_wrap_around a_full_ring space_comes_back \
    flushing_tells more_unreleased_frames many_rings everything_in_one_thread never_looks_again a_large_ring \
    every_call_is_harmless
  printf '%s\n' "${filter%:}"
}

# bench_channel <name>: both endpoints on the address of node 1.
bench_channel() {
  step "bench channel"
  "$bin/faro-lab" bench channel --set transport=verbs --set cluster.listen="$(address_of 1):0" --frame 4096 --ring 65536 \
    --count 500 --trips 100 --repetitions 1 >"$share/$1.txt" 2>"$share/$1.log" ||
    fail "bench channel: exit code $?: $(tail -n 20 "$share/$1".{log,txt})"
  grep '^verbs .*verified' "$share/$1.txt" || fail "no figures over verbs: $(cat "$share/$1.txt")"
}

switched 2 9000
for driver in rxe siw; do
  step "$driver over a switch"
  rdma_over "$driver" 1 2
  before=$(resources)
  on_addresses 2 passes endpoint_test 'over/*/verbs' 31
  expect_resources "$before"
  on_addresses 2 passes channel_budget_test 'over/ChannelBudget.is_told*/verbs' 3
  expect_resources "$before"
  on_addresses 2 passes transport_contract_test "$(of_channels)" 12
  expect_resources "$before"
  bench_channel "channel_$driver"
  expect_resources "$before"
  for node in 1 2; do rdma link delete "$driver$node"; done
done
