# Nodes and endpoints of two builds with each other, over verbs, in both drivers: `./run compatibility` makes the builds.
source tests/softroce/lib/suite.sh

readonly builds=build/compatibility
[[ -e $builds/base/complete ]] || fail "there is no build of $(<tests/compatibility/base): ./run compatibility makes it"

switched 2 9000
for driver in rxe siw; do
  step "$driver over a switch"
  rdma_over "$driver" 1 2
  before=$(resources)
  status=0
  PAIR_ROWS=20000 tests/compatibility/pairs "$builds"/{base,current}/installed "/run/pairs_$driver" \
    "$(address_of 1)" "$(address_of 2)" verbs || status=$?
  find "/run/pairs_$driver" -maxdepth 1 -type f -exec cp -t "$share" {} +
  [[ $status -eq 0 ]] || fail "over $driver"
  expect_resources "$before"
  for node in 1 2; do rdma link delete "$driver$node"; done
done
