# The table of the two-stage shuffle in Java, 4 JVMs × 2 workers: Faro over verbs on rxe and siw, frames of 16 KiB, against
# both forms of the Java NIO sockets middleware, in one guest, in one run, over the switch; medians of 7 rounds after 5 that
# only warm up. $1: integers per JVM, 500 000 by
# default; with few of them the ends of rounds are most of it.
#
# The sockets in the paper's form, a write per row, get a 50th of the rows; all are compared by the time per row and hop.
# The JVMs have their quick compiler only: the other one needs minutes of an emulated processor.
source tests/softroce/lib/suite.sh
source tests/softroce/lib/java.sh

readonly rows=${1:-500000}
readonly table=$share/table.txt line='%-24s %8s %7s %7s\n'
jvm=(java -XX:+UseSerialGC -Xmx48m -XX:TieredStopAtLevel=1)
export FARO_RING_BYTES=64KiB # and the threshold of 16 KiB that is the default
tuned_ns='' paper_ns=''

# run <name> <rows> <transport>: sets ns, of wall clock per row and hop.
run() {
  mixed "$1" jjjj --transport "$3" --workers 2 --rows "$2" --warmup 5 --repetitions 11
  expect_equal "$1: verified" "$(jq .verified "$share/$1.0.json")" true
  ns=$(jq "1e9 * .warm.seconds / (2 * 4 * $2) | round" "$share/$1.0.json")
}

# row <contestant>: a line of the table, of `ns`.
row() {
  # shellcheck disable=SC2059
  printf "$line" "$1" "$ns" "$(percent_less "$tuned_ns")" "$(percent_less "$paper_ns")" | tee -a "$table"
}

# percent_less <reference>
percent_less() { jq -nr "(1 - $ns / $1) * 1000 | round / 10"; }

switched 4 9000
run nio-paper $((rows / 50)) nio-paper
paper_ns=$ns
run nio "$rows" nio
tuned_ns=$ns
# shellcheck disable=SC2059
printf "$line" 'Java, 4 × 2' ns/hop '% less' '% less' '' '' tuned paper | tee "$table"
row "NIO, tuned"
for driver in rxe siw; do
  rdma_over "$driver" {1..4}
  run "faro-$driver" "$rows" verbs
  row "Faro, verbs on $driver"
  [[ $driver == siw ]] || expect_clean rxe{1..4}
  for node in 1 2 3 4; do rdma link delete "$driver$node"; done
done
ns=$paper_ns
row "NIO, paper's form"
