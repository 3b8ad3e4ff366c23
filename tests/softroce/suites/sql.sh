# Queries of the engine in examples/sql on two nodes whose rows go over verbs, over rxe and siw: what they answer is what one
# node does, which needs no network.
source tests/softroce/lib/suite.sh

readonly class_path="examples/sql/target/faro-sql-0.1.0.jar:examples/sql/target/lib/*"
readonly limit_s=240 # of a query: an emulated processor only interprets it

# answer <name> <flags...>: for each query its name, rows and checksum, and whether all its runs agree.
answer() {
  java -XX:+UseSerialGC -Xmx160m -XX:TieredStopAtLevel=1 -cp "$class_path" io.faro.sql.bench.QueryBench --data tpch --scale 0.01 \
    --queries q3,q12 --warmup 0 --laps 1 --sampled 0 --limit "$limit_s" --workers 1 --set connect.timeout_ms=120000 \
    "${@:2}" >"$share/$1.json" 2>"$share/$1.log" || fail "$1: exit code $?: $(tail -n 20 "$share/$1".{log,json})"
  jq -r '.queries[] | [.name, .rows, .checksum, .verified] | join(" ")' "$share/$1.json"
}

step "one node"
expected=$(answer one --nodes 1)
[[ $expected == *true*$'\n'*true ]] || fail "two queries were asked for: $expected"

sent_once
switched 2 9000
for driver in rxe siw; do
  step "$driver over a switch"
  rdma_over "$driver" 1 2
  before=$(resources)
  expect_equal "name, rows, checksum, verified" \
    "$(answer "$driver" --nodes 2 --transport verbs --host "$(addresses_of 2)")" "$expected"
  [[ $driver == siw ]] || expect_sent_once rxe1 rxe2
  expect_resources "$before"
  rdma link delete "${driver}1"
  rdma link delete "${driver}2"
done
