# Runs the fuzz targets. Sourced after tests/levels/testing.sh.
#
# In $fuzz_folder stand corpus/<target>, which goes on from run to run, findings/ and logs/.
fuzz_folder=build/fuzz
fuzz_seed=0 # another one each time

# The targets in C++, a line each.
native_fuzz_targets() {
  local source
  for source in tests/fuzz/*_fuzz.cc; do basename "$source" _fuzz.cc; done
}

# fuzz <seconds> <target...>
fuzz() {
  packages build fuzz
  local seconds=$1 targets=("${@:2}") target native=()
  for target in "${targets[@]}"; do
    [[ $target == row_codec ]] && continue
    [[ -f tests/fuzz/${target}_fuzz.cc ]] || fail "fuzz: there is no tests/fuzz/${target}_fuzz.cc"
    native+=("fuzz_$target")
  done
  step "building fuzz"
  [[ ${#native[@]} -eq 0 ]] || configure_and_build fuzz "${native[@]}"
  [[ " ${targets[*]} " != *' row_codec '* ]] || build_row_codec
  step "fuzzing ${#targets[@]} targets for $seconds s each, $jobs at a time"
  mkdir -p "$fuzz_folder/findings" "$fuzz_folder/logs"
  for target in "${targets[@]}"; do
    while (($(jobs -rp | wc -l) >= jobs)); do wait -n || true; done
    fuzz_one "$target" "$seconds" &
  done
  wait
  fuzz_table "${targets[@]}"
}

# The same, with the same inputs each time, as far as time goes: what fails is due to the change. What `fuzz` has found stays as
# it is, and is not used.
fuzz_anew() {
  local fuzz_folder=build/fuzz/fixed fuzz_seed=1
  rm -rf "$fuzz_folder"
  fuzz "$@"
}

# The target in Java: libFuzzer in a JVM is Jazzer, which Maven downloads once.
build_row_codec() {
  configure_and_build release faro_natives
  quietly maven process-test-classes -P fuzz -pl faro ||
    fail "fuzz: row_codec could not be built; it takes Jazzer, com.code-intelligence:jazzer, from Maven Central"
}

# fuzz_program <target>: sets $program, to which libFuzzer's arguments are added.
fuzz_program() {
  program=("build/fuzz/tests/bin/fuzz_$1")
  [[ $1 == row_codec ]] || return 0
  program=(java -Xmx256m -XX:+UseSerialGC -cp 'java/faro/target/classes:java/faro/target/test-classes:java/faro/target/fuzz/*'
    com.code_intelligence.jazzer.Jazzer --target_class=io.faro.RowCodecFuzz
    '--instrumentation_includes=io.faro.**' '--custom_hook_includes=io.faro.**' --reproducer_path="$fuzz_folder/logs")
}

# fuzz_one <target> <seconds>
fuzz_one() {
  local program
  fuzz_program "$1"
  mkdir -p "$fuzz_folder/corpus/$1"
  rm -f "$fuzz_folder/findings/$1-"*
  setpriv --pdeathsig KILL "${program[@]}" "$fuzz_folder/corpus/$1" "tests/fuzz/corpus/$1" \
    -max_total_time="$2" -max_len=1024 -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
    -seed="$fuzz_seed" -artifact_prefix="$fuzz_folder/findings/$1-" >"$fuzz_folder/logs/$1.log" 2>&1
}

# One line per target; fails if there are findings, saying how to repeat them.
fuzz_table() {
  local target log executions total=0 findings=()
  printf '%-14s %14s %10s %10s %8s\n' target executions exec/s features corpus
  for target in "$@"; do
    log=$fuzz_folder/logs/$target.log
    executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    total=$((total + ${executions:-0}))
    printf '%-14s %14s %10s %10s %8s\n' "$target" "${executions:--}" \
      "$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")" \
      "$(sed -n 's/.* ft: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)" \
      "$(sed -n 's/.* corp: \([0-9]*\)\/.*/\1/p' "$log" | tail -n 1)"
    grep -q '^#[0-9]*[[:space:]]*DONE' "$log" || findings+=("$target")
  done
  printf '%-14s %14s\n' all "$total"
  summarise fuzz "$total executions of $# targets, ${#findings[@]} findings"
  [[ ${#findings[@]} -eq 0 ]] && return
  local found program
  for target in "${findings[@]}"; do
    log=$fuzz_folder/logs/$target.log
    printf '\n%s: %s ends with\n' "$target" "$log"
    grep -E '^(does not hold|== Java Exception: |.*ERROR: |SUMMARY: |.*runtime error: )' "$log" || tail -n 5 "$log"
    found=$(compgen -G "$fuzz_folder/findings/$target-*" | head -n 1) || true
    fuzz_program "$target"
    [[ -z $found ]] || printf 'repeat it by:  %s\n' "${program[*]@Q} $found"
  done >&2
  fail "fuzz: findings in ${findings[*]}"
}
