# Nodes and endpoints of two builds with each other, over verbs, in both drivers: `./run compatibility` makes the builds.
source tests/softroce/lib/suite.sh

readonly builds=build/compatibility
mapfile -t bases <<<"$(grep -o '^[0-9a-f]\{40\}' tests/compatibility/bases)" # a guest has no /dev/fd
for base in "${bases[@]}"; do
  [[ -e $builds/$base/complete ]] || fail "there is no build of $base: ./run compatibility makes it"
done

switched 2 9000
for driver in rxe siw; do
  step "$driver over a switch"
  rdma_over "$driver" 1 2
  before=$(resources)
  for base in "${bases[@]}"; do
    logs=/run/pairs_$driver/$base status=0
    PAIR_ROWS=20000 tests/compatibility/pairs "$base" "$builds" "$logs" "$(address_of 1)" "$(address_of 2)" verbs || status=$?
    mkdir -p "$share/$driver/$base"
    find "$logs" -maxdepth 1 -type f -exec cp -t "$share/$driver/$base" {} +
    [[ $status -eq 0 ]] || fail "over $driver"
  done
  expect_resources "$before"
  for node in 1 2; do rdma link delete "$driver$node"; done
done
