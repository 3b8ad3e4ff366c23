# The two-stage benchmark over verbs, two nodes of one worker: both in Java, and over rxe one in each language, either as
# the first. All find all rows, with one checksum. It shows that it works; how fast is for suite bench_java.
source tests/softroce/lib/suite.sh
source tests/softroce/lib/java.sh

readonly rows=5000
readonly shape=(--transport verbs --workers 1 --rows "$rows" --repetitions 1)
checksum=''

sent_once
switched 2 9000
for driver in rxe siw; do
  rdma_over "$driver" 1 2
  before=$(resources)
  for languages in jj jc cj; do
    [[ $driver == rxe || $languages == jj ]] || continue
    step "$driver over a switch, $languages"
    mixed "$driver-$languages" "$languages" "${shape[@]}"
    result=$(mixed_result "$driver-$languages")
    [[ -n $checksum ]] || read -r _ _ checksum _ <<<"$result"
    expect_equal "verified, rows, checksum, transport" "$result" "true $((2 * rows)) $checksum verbs"
  done
  [[ $driver == siw ]] || expect_sent_once rxe1 rxe2
  expect_resources "$before"
  rdma link delete "${driver}1"
  rdma link delete "${driver}2"
done
