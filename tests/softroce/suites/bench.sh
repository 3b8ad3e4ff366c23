# The table of the two-stage shuffle, 4 processes × 2 workers: verbs over rxe and siw, with each way of notifying and
# thresholds of 1, 4, 16 and 32 KiB, against both forms of the sockets baseline and Faro's own TCP; on a network that is
# not shaped, and shaped to 1 Gb/s and 100 Mb/s as the paper's cluster had. Everything crosses the switch, in one guest,
# in one run. $1: integers per process, 200 000 by default; $2: laps, 3 by default.
#
# The sockets in the paper's form, a write per row, get a 20th of the rows, and are compared by the time per row and hop.
#
# `floor` is the time per row and hop that the bytes alone take: by the driver, at the bandwidth that ib_write_bw reaches
# with writes of 16 KiB between two nodes, both processors of the guest for itself; by the shaped network, at its rate for
# each node; the longer of both. `of allowed` compares the time saved with the bytes saved: 100 % where the network is all
# that takes time.
source tests/softroce/lib/suite.sh

readonly rows=${1:-200000} laps=${2:-3} jumbo=9000
nodes=4
readonly table=$share/table.txt
readonly line='%-8s %-21s %8s %7s %6s %9s %7s %7s  %6s %6s %6s %6s\n'
baseline_ns='' paper_ns='' baseline_bytes=''
declare -A bandwidth=()                                # Gb/s of each driver
declare -Ar rate=([unshaped]=1000 [1gbit]=1 [100mbit]=0.1) # Gb/s of each node

# run <name> <rows> <flags...>: sets ns (of wall clock per row and hop) and bytes (on the wire per round).
run() {
  local name=$1 sent
  sent=$(wire_bytes "$nodes")
  two_stage "$name" --processes "$nodes" --workers 2 --rows "$2" --repetitions "$laps" --ring 64KiB \
    --host "$(addresses_of "$nodes")" "${@:3}"
  bytes=$((($(wire_bytes "$nodes") - sent) / (2 * laps))) # a warm-up for each lap
  ns=$(result_of "$name" '.wall_ns_per_hop * 1000 | round | . / 1000')
}

# percent_less <found> <reference>
percent_less() { jq -nr "(1 - $1 / $2) * 1000 | round / 10"; }

# row <network> <contestant> [driver result]: a line of the table; with posts, notifications and signalled posts per
# transfer and the floor if there is a result over verbs.
row() {
  local allowed saved reached='' rest=''
  allowed=$(percent_less "$bytes" "$baseline_bytes")
  saved=$(percent_less "$ns" "$baseline_ns")
  [[ $1 == unshaped || $2 == sockets* ]] || reached=$(jq -nr "$saved / $allowed * 100 | round")
  [[ -z ${3:-} ]] || rest="$(result_of "$4" '[.nodes[].links[] | select(.transport == "verbs")] |
    (map(.transfers) | add) as $t | [(map(.posts) | add), (map(.notifications) | add), (map(.signalled_posts) | add)] |
    map(. / $t * 100 | round / 100 | tostring) | join(" ")') $(floor_ns "$1" "$3")"
  # shellcheck disable=SC2086
  printf "$line" "$1" "$2" "$ns" "$saved" "$(percent_less "$ns" "$paper_ns")" "$bytes" "$allowed" "$reached" $rest |
    tee -a "$table"
}

# floor_ns <network> <driver>: of `bytes`, which are two hops of each row of each node.
floor_ns() {
  jq -nr "[1 / ${bandwidth[$2]}, 1 / $nodes / ${rate[$1]}] | max * $bytes * 8 / ($rows * $nodes * 2) * 10 | round / 10"
}

baselines() {
  run "$1-paper" $((rows / 20)) --transport sockets-paper
  local of_paper=$ns bytes_of_paper=$((bytes * 20))
  paper_ns=$ns
  run "$1-sockets" "$rows" --transport sockets
  baseline_ns=$ns baseline_bytes=$bytes
  row "$1" "sockets, tuned"
  ns=$of_paper bytes=$bytes_of_paper
  row "$1" "sockets, paper's form"
  run "$1-tcp" "$rows" --transport tcp
  row "$1" "Faro, tcp"
}

# beside_the_driver <driver>: one lane with frames of 64 KiB, and ib_write_bw with writes of 64 KiB, in turns.
beside_the_driver() {
  local lap faro=() tool=() bytes=65536 count=2000
  for ((lap = 0; lap < laps; lap++)); do
    faro+=("$(link_bandwidth "$1-link" 1 2 "$bytes" "$count")")
    tool+=("$(write_bandwidth "$1" 1 2 "$bytes" "$count")")
  done
  printf '%s, 64 KiB, Gb/s: one lane of Faro %s; ib_write_bw %s\n' "$1" "${faro[*]}" "${tool[*]}" | tee -a "$table"
}

# connects <network> <driver>: how long the sessions of its lines took to open.
connects() {
  jq -rs --arg of "$1, $2" '[.[].contests[].results[].connect_seconds[] * 1000 | round] | sort |
    "\($of): 4 × 2 connected in \(.[0]) to \(.[-1]) ms, median \(.[length / 2 | floor])"' \
    "$share/$1-$2-"*-*.json | tee -a "$table"
}

over() {
  local network=$1 driver=$2 notify threshold node name
  rdma_over "$driver" {1..4}
  if [[ $network == unshaped ]]; then
    bandwidth[$driver]=$(write_bandwidth "$driver" 1 2 16384 2000)
    beside_the_driver "$driver"
  fi
  for notify in send immediate; do
    [[ $driver == rxe || $notify == send ]] || continue
    for threshold in 1 4 16 32; do
      name=$network-$driver-$notify-$threshold
      run "$name" "$rows" --transport verbs --threshold "${threshold}KiB" --set "verbs.notify=$notify"
      row "$network" "$driver, $notify, $threshold KiB" "$driver" "$name"
    done
  done
  connects "$network" "$driver"
  [[ $network != unshaped || $driver == siw ]] || expect_clean rxe{1..4}
  for node in 1 2 3 4; do rdma link delete "$driver$node"; done
}

switched "$nodes" "$jumbo"
unbound_as 2 1 # ib_write_bw binds its client to no address
# shellcheck disable=SC2059
{
  printf "$line" network contestant ns/hop '% less' '% less' bytes/run '% less' '% of' posts/ notes/ signal floor
  printf "$line" '' '' '' tuned paper '' tuned allowed transf transf /trans ns/hop
} | tee "$table"
for network in unshaped 1gbit 100mbit; do
  [[ $network == unshaped ]] || shaped "$nodes" "$network"
  baselines "$network"
  over "$network" rxe
  over "$network" siw
done
