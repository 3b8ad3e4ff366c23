# The two-stage benchmark in Java over verbs, verified, with two JVMs of one worker each, and in the same guest over Java
# NIO sockets. It shows that it works, not how fast: the JVMs only interpret, as an emulated processor takes minutes over
# code that is compiled while it runs.
source tests/softroce/lib/suite.sh

class_path=java/faro-bench/target/faro-bench-0.1.0.jar:java/faro/target/faro-0.1.0.jar:$(echo java/faro/target/lib/*.jar)
readonly shape=(--java "$class_path" --processes 2 --workers 1 --rows 5000 --repetitions 1)
export JAVA_TOOL_OPTIONS="-XX:+UseSerialGC -Xint -Xmx48m"

switched 2 9000
step "rxe over a switch, Java"
rdma_over rxe 1 2
before=$(resources)
two_stage java_rxe "${shape[@]}" --transport java-verbs,java-nio --host "$(addresses_of 2)"
printf 'rxe: %s s over verbs, %s s over NIO sockets\n' \
  "$(result_of java_rxe 'select(.transport == "java-verbs") | .seconds')" \
  "$(result_of java_rxe 'select(.transport == "java-nio") | .seconds')"
expect_resources "$before"
