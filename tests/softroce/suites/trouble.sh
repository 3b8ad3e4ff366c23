# A node is killed or stopped, its device removed, its interface taken down in the middle of a shuffle: all others end by
# themselves with whom they lost, and leave nothing behind. If it is killed or stopped they name it within their time limit; of
# a network that breaks also the victim is told, and may be the first to go. $*: only these of killed, stopped, down, removed.
# Killed also with lanes that end at nodes. --quick: over siw killed and down.
source tests/softroce/lib/suite.sh

nodes=3 victim=3
limit_s=20 # liveness_s, the retries of an RDMA device, closing; and emulated
liveness_s=5
troubles=("$@")
[[ $# -gt 0 ]] || troubles=(killed stopped down removed)

# start_nodes <lane.ends>: a shuffle that would take minutes.
start_nodes() {
  local ends=$1 node list=()
  pids=()
  for ((node = 1; node <= nodes; node++)); do list+=("$(address_of "$node"):7100"); done
  for ((node = 1; node <= nodes; node++)); do
    timeout 60 "$bin/faro-lab" bench two-stage --transport verbs --workers 2 --rows 100000000 --repetitions 1 \
      --set liveness.timeout_ms=$((1000 * liveness_s)) --set lane.ends="$ends" --node $((node - 1)) --nodes "$(IFS=,; printf %s "${list[*]}")" \
      >"$share/node$node.log" 2>&1 &
    pids[node]=$!
  done
}

# has_sent <bytes>: so much has crossed the wire since the nodes were started.
has_sent() { [[ $(($(wire_bytes "$nodes") - sent)) -ge $1 ]]; }

# process_of <node>: what `timeout` runs.
process_of() { cat "/proc/${pids[$1]}/task/${pids[$1]}/children"; }

# have_said <text> <node...>
have_said() {
  local text=$1 node
  for node in "${@:2}"; do grep -q -- "$text" "$share/node$node.log" || return 1; done
}

# name_the_victim: the survivors, in time.
name_the_victim() {
  wait_until $((liveness_s + 1)) "the others to name node $((victim - 1))" have_said "node $((victim - 1)) .*is lost" 1 2
}

# ends_as_lost <node...>
ends_as_lost() {
  local node status
  for node in "$@"; do
    status=0
    wait "${pids[node]}" || status=$?
    expect_failure "node $((node - 1))" "$status" lost "$share/node$node.log"
  done
}

# break_one <driver> <trouble> <lane.ends>
break_one() {
  local driver=$1 trouble=$2 ends=$3 before started stopped removal seconds
  step "$driver: node $((victim - 1)) $trouble, lanes to $ends"
  rdma_over "$driver" 1 2 3
  before=$(resources)
  sent=$(wire_bytes "$nodes")
  start_nodes "$ends"
  wait_until 30 "the shuffle to run" has_sent 5000000
  started=$SECONDS
  case $trouble in
    killed)
      kill -KILL "$(process_of "$victim")"
      name_the_victim
      ends_as_lost 1 2
      ;;
    stopped)
      stopped=$(process_of "$victim")
      kill -STOP "$stopped"
      name_the_victim
      ends_as_lost 1 2
      kill -CONT "$stopped" # it learns that it was given up
      ends_as_lost 3
      expect_failure "node $((victim - 1))" 1 "gave up" "$share/node$victim.log"
      ;;
    removed)
      # The kernel waits until the last process has closed the device.
      timeout 40 rdma link delete "$driver$victim" &
      removal=$!
      ends_as_lost 1 2 3
      wait "$removal" || fail "rdma link delete: exit code $?"
      ;;
    down)
      ip link set "net$victim" down
      ends_as_lost 1 2 3
      ;;
  esac
  wait || true
  seconds=$((SECONDS - started))
  [[ $seconds -le $limit_s ]] || fail "it took $seconds s until all had ended"
  printf 'all had ended after %d s\n' "$seconds"
  [[ $trouble == removed ]] || expect_resources "$before"
  for node in 1 2 3; do rdma link delete "$driver$node" 2>/dev/null || true; done
  if [[ $trouble == down ]]; then
    ip link set "net$victim" up
    know_peers "$victim" "$nodes"
  fi
}

switched "$nodes" 9000
for driver in rxe siw; do
  for trouble in "${troubles[@]}"; do
    [[ $driver == rxe || " $(or_quick "$trouble" 'killed down') " == *" $trouble "* ]] || continue
    break_one "$driver" "$trouble" workers
    [[ $trouble != killed ]] || break_one "$driver" "$trouble" node
  done
done
