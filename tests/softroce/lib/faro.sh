# Faro in a guest, whose network nobody else can reach.
export FARO_SECURITY_OPEN=1

# stacks <program>: what its threads were doing when it crashed.
stacks() {
  local core
  for core in "$share"/core.*; do
    [[ -f $core ]] || continue
    gdb -batch -ex 'thread apply all backtrace' "$1" "$core" 2>/dev/null | grep -E '^(Thread|#)' | head -n 80
    rm "$core"
  done
}

# passes <gtest program> <filter> <least number of cases>: all of them pass, none is skipped.
passes() {
  local log=$share/${1##*/}.log passed status=0
  step "${1##*/} $2"
  "$tests/$1" --gtest_filter="$2" --gtest_brief=1 >"$log" 2>&1 || status=$?
  [[ $status -eq 0 ]] || fail "exit code $status: $(tail -n 40 "$log"; stacks "$tests/$1")"
  ! grep -q ': Skipped$' "$log" || fail "nothing may be skipped here: $(grep -A1 -m1 ': Skipped$' "$log")"
  passed=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) tests\?\.$/\1/p' "$log")
  expect_at_least "cases passed" "${passed:-0}" "$3"
}

# on_addresses <nodes> <command...>: runs a test program with its nodes on the addresses of nodes 1 … and over verbs alone.
# cables=<interface,…>: that cut these addresses off when they go down.
on_addresses() {
  local list
  list=$(addresses_of "$1")
  shift
  TEST_ADDRESSES=$list TEST_CABLES=${cables:-} TEST_TRANSPORT=verbs "$@"
}

# two_stage <name> <flags...>: the two-stage benchmark on one device or network for each process; the result, verified
# by itself, as JSON in the shared folder.
two_stage() {
  local name=$1
  shift
  "$bin/faro-lab" bench two-stage --json "$@" >"$share/$name.json" 2>"$share/$name.log" ||
    fail "two-stage $*: exit code $?: $(cat "$share/$name.log" "$share/$name.json" | tail -n 20)"
}

# link_bandwidth <name> <server node> <client node> <bytes> <count> <flags...>: Gb/s of one lane over verbs, verified by
# itself, to compare with write_bandwidth.
link_bandwidth() {
  local name=$1
  "$bin/faro-lab" bench link --transport verbs --host "$(address_of "$3"),$(address_of "$2")" --frame "$4" --count "$5" \
    --repetitions 3 --json "${@:6}" >"$share/$name.json" 2>"$share/$name.log" ||
    fail "bench link: exit code $?: $(tail -n 5 "$share/$name.log")"
  jq -r '.results[0].gigabits_per_second * 1000 | round | . / 1000' "$share/$name.json"
}

# result_of <name> <jq expression over a contestant's result>
result_of() { jq -r ".contests[].results[] | $2" "$share/$1.json"; }

# link_sum <name> <counter>: of all links between nodes, warm-up included.
link_sum() { result_of "$1" "[.nodes[].links[] | select(.transport != \"local\") | .$2] | add"; }
