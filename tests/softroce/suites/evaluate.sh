# Figure 3 of the paper in one guest, for ./run evaluate: the two-stage shuffle, 4 processes × 1, 2 and 4 workers, over tuned
# sockets, Faro's TCP, and verbs on rxe and siw, lap by lap; and 4 JVMs × 2 workers over Java NIO sockets and verbs. What each
# run found stands in <contestant>.<workers>.<lap>.json. $1: laps, 3 by default; $2, $3: integers per process and per JVM.
#
# The JVMs have their quick compiler only: the other one needs minutes of an emulated processor.
source tests/softroce/lib/suite.sh
source tests/softroce/lib/java.sh

readonly laps=${1:-3} rows=${2:-100000} java_rows=${3:-200000} jumbo=9000
nodes=4
jvm=(java -XX:+UseSerialGC -Xmx48m -XX:TieredStopAtLevel=1)
export FARO_RING_BYTES=64KiB

# native <contestant> <transport> <lap>: with each number of workers.
native() {
  local workers
  for workers in 1 2 4; do
    two_stage "$1.$workers.$3" --processes "$nodes" --workers "$workers" --rows "$rows" --repetitions 1 \
      --host "$(addresses_of "$nodes")" --transport "$2"
  done
}

# jvms <contestant> <transport> <lap>
jvms() {
  mixed "java-$1.2.$3" jjjj --transport "$2" --workers 2 --rows "$java_rows" --warmup 5 --repetitions 5
}

switched "$nodes" "$jumbo"
for ((lap = 0; lap < laps; lap++)); do
  native sockets sockets "$lap"
  native tcp tcp "$lap"
  jvms nio nio "$lap"
  for driver in rxe siw; do
    rdma_over "$driver" {1..4}
    native "$driver" verbs "$lap"
    jvms "$driver" verbs "$lap"
    for ((node = 1; node <= nodes; node++)); do rdma link delete "$driver$node"; done
  done
done
