# The two-stage benchmark on nodes in Java, and on nodes in C++ and Java together.

java_jars=(java/lab/{bench/target/faro-bench,sockets/target/faro-sockets}-0.1.0.jar java/faro/target/faro-0.1.0.jar)
readonly java_class_path=${SUITE_CLASS_PATH:-$(IFS=:; echo "${java_jars[*]}")}

# They only interpret: an emulated processor takes longer over compiling what runs a few times. A suite may change it.
jvm=(java -XX:+UseSerialGC -Xmx48m -Xint)

# mixed <name> <languages> <flags...>: a node at the address of each of nodes 1, 2, …, in C++ where the languages have a c,
# in Java where they have a j. They wait for each other longer than by default: JVMs start slowly here.
mixed() {
  local name=$1 languages=$2 node nodes='' program pids=()
  for ((node = 1; node <= ${#languages}; node++)); do nodes+=${nodes:+,}$(address_of "$node"):7170; done
  for ((node = 0; node < ${#languages}; node++)); do
    case ${languages:node:1} in
      c) program=("$bin/faro-lab" bench two-stage --json) ;;
      j) program=("${jvm[@]}" -cp "$java_class_path" io.faro.bench.Main two-stage) ;;
    esac
    FARO_CONNECT_TIMEOUT_MS=120000 "${program[@]}" "${@:3}" --node "$node" --nodes "$nodes" \
      >"$share/$name.$node.json" 2>"$share/$name.$node.log" &
    pids+=($!)
  done
  for node in "${!pids[@]}"; do
    wait "${pids[node]}" || fail "$name: node $node: exit code $?: $(tail -n 20 "$share/$name.$node".{log,json})"
  done
}

# mixed_result <name>: what the first node of mixed has found, in either language: whether every round is verified, the
# rows that arrived, their checksum, the transports to the other nodes.
mixed_result() {
  local file=$share/$1.0.json checksum
  checksum=$(grep -o '"checksum": *[^,}]*' "$file" | tail -n 1) # jq would round it
  checksum=${checksum##*[: ]}
  [[ $checksum == \"* ]] || checksum=$(printf '"%016x"' "$checksum")
  jq -r --argjson checksum "$checksum" '(.contests[0].results[0]? // .) | [.verified, .count // .rounds[-1].count, $checksum,
    (.transports // (.nodes[0].links | map(.transport) - ["local"]) | unique[])] | join(" ")' "$file"
}
