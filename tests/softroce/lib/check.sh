# Assertions of a suite. The first that fails ends the suite and says what was found and what was expected.

# step <text>: what follows, in the log of the suite.
step() { printf '\n--- [%d s] %s\n' "$SECONDS" "$*"; }

fail() {
  printf 'FAILED: %s\n' "$*"
  exit 1
}

# expect_equal <what> <found> <expected>
expect_equal() {
  [[ $2 == "$3" ]] || fail "$1: $2, expected $3"
  printf '%s: %s\n' "$1" "$2"
}

# expect_at_least <what> <found> <expected>
expect_at_least() {
  [[ $2 -ge $3 ]] || fail "$1: $2, expected at least $3"
  printf '%s: %s, at least %s\n' "$1" "$2" "$3"
}

# expect_within_percent <percent> <what> <found> <expected>
expect_within_percent() {
  local difference=$(($3 > $4 ? $3 - $4 : $4 - $3))
  [[ $((difference * 100)) -le $(($1 * $4)) ]] || fail "$2: $3, expected $4 within $1 %"
  printf '%s: %s, within %s %% of %s\n' "$2" "$3" "$1" "$4"
}

# expect_failure <what> <exit code> <expected text> <file of its output>: it failed on its own (no signal, no time limit)
# and says why.
expect_failure() {
  [[ $2 -ne 0 && $2 -lt 124 ]] || fail "$1: exit code $2, expected its own failure"
  grep -q -- "$3" "$4" || fail "$1: does not say '$3' but: $(tail -n 5 "$4")"
  printf '%s: exit code %s, %s\n' "$1" "$2" "$(grep -m 1 -- "$3" "$4")"
}

# wait_until <seconds> <what> <command...>: looks until the command succeeds.
wait_until() {
  local until=$((SECONDS + $1)) what=$2
  shift 2
  until "$@"; do
    [[ $SECONDS -lt $until ]] || fail "waited in vain for $what"
    sleep 0.05
  done
}
