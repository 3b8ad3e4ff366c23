# What the scripts that run tests share. Sourced, never called.
source "$(dirname "${BASH_SOURCE[0]}")/../../cmake/building.sh"

# The closing line of each part, for the end of a script.
summary=()
summarise() { summary+=("$(printf '%-10s %s' "$1" "$2")"); }

# run_ctest <preset> [ctest arguments]: with the output of the tests that fail. More at a time than there are processors, unless
# $at_a_time says otherwise: many tests wait for a time limit.
at_a_time=$((2 * jobs))
run_ctest() {
  local preset=$1
  shift
  local log="build/$preset/ctest.log" wrapper=()
  # ThreadSanitizer of g++ 12 cannot place its shadow memory if the kernel randomizes addresses with more than 28 bits.
  if [[ $preset == tsan ]] && setarch -R true 2>/dev/null; then
    wrapper=(setarch -R)
  fi
  local status=0
  "${wrapper[@]}" ctest --test-dir "build/$preset" --parallel "$at_a_time" --output-on-failure --no-tests=error "$@" |
    tee "$log" | grep --line-buffered -v '^ *Start ' || status=$?
  why_skipped "$preset"
  summarise "$preset" "$(grep -E '[0-9]+% tests passed|No tests were found' "$log" || tail -n 1 "$log")"
  [[ $status -eq 0 ]] || fail "tests failed: $preset"
}

# ctest names the tests that were skipped, but not why.
why_skipped() {
  local log=build/$1/Testing/Temporary/LastTest.log
  [[ -f $log ]] || return 0
  local reasons
  reasons=$(sed -n '/^[^ ]*:[0-9]*: Skipped$/{n;p}' "$log" | sort | uniq -c | sort -rn)
  [[ -z $reasons ]] || printf '\nSkipped because (number of tests, reason):\n%s\n' "$reasons"
}

# run_example <title> <command...>
run_example() {
  local title=$1
  shift
  printf '  %s\n' "$title"
  quietly timeout 120 "$@" || fail "example failed: $title"
}

# closing <what was left out, a line each>: the last lines of a script that passed.
closing() {
  step "passed in $((SECONDS - started)) s"
  printf '%s\n' "${summary[@]}" "$@"
}
