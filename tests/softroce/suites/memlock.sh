# Less memory may be locked than the rings need: an error that says so, before anything is connected.
source tests/softroce/lib/suite.sh

one_device 2
rdma_over rxe 0
before=$(resources)

# Root may lock what it likes, so without its capabilities; two-stage opens a session for each process.
step "64 KiB for 2 × 1 nodes"
status=0
(
  ulimit -l 64
  setpriv --bounding-set=-all --inh-caps=-all "$bin/faro-lab" bench two-stage --transport verbs --processes 2 --rows 1000 \
    --repetitions 1 --host "$(addresses_of 2)" >"$share/memlock.log" 2>&1
) || status=$?
expect_failure "a session beyond memlock" "$status" memlock "$share/memlock.log"
grep -qE '64 KiB|65,?536' "$share/memlock.log" || fail "the limit is not named: $(cat "$share/memlock.log")"
expect_resources "$before"
