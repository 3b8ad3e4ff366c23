#!/usr/bin/env bash
# Channels between endpoints over verbs, in both drivers: the tests of endpoints, and what a channel costs, verified.
source tests/softroce/lib/suite.sh

# bench_channel <name>: both endpoints on the address of node 1.
bench_channel() {
  step "bench channel"
  "$bin/faro" bench channel --set transport=verbs --set cluster.listen="$(address_of 1):0" --frame 4096 --ring 65536 \
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
  bench_channel "channel_$driver"
  expect_resources "$before"
  for node in 1 2; do rdma link delete "$driver$node"; done
done
