# A query of SQL on a cluster of Flink whose two TaskManagers exchange over verbs, over rxe and siw: the answer is what awk
# counts in the same files, and each link between the TaskManagers was one of verbs. table.txt has the figures.
source tests/softroce/lib/suite.sh

readonly scale=0.001 long_s=700 # more than anything takes
readonly table=$share/table.txt line='%-4s %8s %8s %9s %7s %8s\n'

# An emulated processor is slow to load and compile classes: they are not verified, and compiled by C1 only. Nothing here is
# to be taken for dead meanwhile. The time that Pekko has to start is a property, as Flink hands its own setting on under a
# name that Pekko no longer reads.
export JDK_JAVA_OPTIONS="-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
JDK_JAVA_OPTIONS+=" -Dpekko.remote.classic.startup-timeout=${long_s}s"
readonly timeouts=(--start-limit "$long_s"
  -D{heartbeat,pekko.ask,pekko.tcp,client,slot.request,taskmanager.registration,web}.timeout="${long_s}000"
  -D{rest.connection,rest.idleness,rest.await-leader,faro.connect,faro.liveness}-timeout="${long_s}000")
readonly query="select o_orderpriority, count(*) as n from orders join lineitem on o_orderkey = l_orderkey group by o_orderpriority"

# counted: what the query has to answer, "<priority> <count>" for each.
counted() {
  awk -F'|' 'FILENAME ~ /orders/ { priority[$1] = $6; next } { ++count[priority[$1]] }
    END { for (each in count) print each, count[each] }' "build/flink/tpch-$scale"/{orders,lineitem}/*.csv
}

# answered <name>: the same as Flink has answered it both times, from its tables.
answered() { awk -F' *[|] *' 'NF == 4 && $3 ~ /^[0-9]+$/ { print $2, $3 }' "$share/$1.log" | sort; }

# run_query <name>: twice in one cluster, as the first time all classes are loaded.
run_query() {
  local pid status=0
  examples/flink/built Shell "${timeouts[@]}" --hosts "$(addresses_of 2)" --slots 1 --scale "$scale" \
    -Dfaro.transport=verbs -e "$query" -e "$query" >"$share/$1.log" 2>"$share/$1.err" &
  pid=$!
  wait "$pid" || status=$?
  mkdir "$share/$1"
  cp "build/flink/run-$pid"/*.log "$share/$1"
  [[ $status -eq 0 ]] || fail "$1: exit code $status: $(tail -n 20 "$share/$1".{log,err})"
}

# links <name>: "<from> <to> <transport> <kilobytes> <frames>" for each link between the TaskManagers.
links() { sed -nE 's/^(taskmanager-[0-9]) -> (\S+) +(\S+) +(\S+) KB in +(\S+) frames$/\1 \2 \3 \4 \5/p' "$share/$1.log" | sort; }

# sum_of_links <name> <column of links>
sum_of_links() { links "$1" | awk -v column="$2" '{ gsub(",", ""); sum += $column } END { print sum }'; }

# figures <name> <bytes on the wire>: a line of the table, with the seconds that each query took and what both moved.
figures() {
  local first second
  read -r first second <<<"$(sed -n 's/^\([0-9.]*\) s$/\1/p' "$share/$1.err" | paste -sd ' ')"
  # shellcheck disable=SC2059
  printf "$line" "$1" "$first" "$second" "$(sum_of_links "$1" 4)" "$(sum_of_links "$1" 5)" "$(($2 / 1000))" | tee -a "$table"
}

# shellcheck disable=SC2059
printf "$line" '' first/s second/s verbs/KB frames wire/KB >"$table"
sent_once
switched 2 9000
for driver in rxe siw; do
  step "$driver over a switch"
  rdma_over "$driver" 1 2
  before=$(resources)
  sent=$(wire_bytes 2)
  run_query "$driver"
  sent=$(($(wire_bytes 2) - sent))
  expect_equal "answer" "$(answered "$driver")" "$({ counted && counted; } | sort)"
  expect_equal "links" "$(links "$driver" | cut -d ' ' -f 1-3 | paste -sd ,)" \
    "taskmanager-1 taskmanager-2 verbs,taskmanager-2 taskmanager-1 verbs"
  figures "$driver" "$sent"
  expect_at_least "KB on the wire" "$((sent / 1000))" "$(sum_of_links "$driver" 4 | cut -d . -f 1)"
  [[ $driver == siw ]] || expect_sent_once rxe1 rxe2
  expect_resources "$before"
  rdma link delete "${driver}1"
  rdma link delete "${driver}2"
done
