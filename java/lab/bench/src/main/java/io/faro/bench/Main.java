package io.faro.bench;

import io.faro.sockets.HeldAddresses;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * The benchmark as a program. Workload: {@code two-stage}, the two-stage shuffle of integers over
 * Faro (auto, shm, tcp, verbs), Java NIO sockets (nio, nio-paper), or what {@link BackendProvider}s know.
 *
 * <p>{@code two-stage [--processes 4] [--workers 1] [--rows 5000000] [--hash finalizer] [--transport
 * auto] [--level many|one|codec] [--hosts 127.0.0.1] [--repetitions 7] [--warmup 5]} starts a JVM per process and prints one line of JSON. With
 * {@code --node} and {@code --nodes} it is one node of a cluster, whose other nodes may be {@code
 * faro-lab bench two-stage} with the same flags.
 */
final class Main {
  static final int PORTS = 2; // in a row: node 0 uses the second one, too

  private Main() {}

  public static void main(String[] arguments) throws Exception {
    if (arguments.length == 0 || !arguments[0].equals("two-stage")) {
      System.err.println("usage: two-stage [--transport auto|shm|tcp|nio|nio-paper] …");
      System.exit(2);
    }
    List<String> flags = List.of(arguments).subList(1, arguments.length);
    Options options = Options.parse(flags);
    if (!options.nodes().isEmpty()) {
      String result = new Node(options).run();
      if (result != null) {
        System.out.println(result);
      }
    } else {
      System.exit(launch(flags, options.job().processes(), options.hosts()));
    }
  }

  /** Starts a JVM like this one per node; node 0 prints. */
  private static int launch(List<String> flags, int processes, List<String> hosts) throws Exception {
    List<Process> started = new CopyOnWriteArrayList<>();
    Runtime.getRuntime()
        .addShutdownHook(new Thread(() -> started.forEach(Process::destroyForcibly)));
    try (HeldAddresses held = new HeldAddresses(processes, PORTS, hosts)) {
      String nodes = String.join(",", held.all());
      for (int node = 0; node < processes; node++) {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(
            java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments());
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), Main.class.getName()));
        command.add("two-stage");
        command.addAll(withoutProcesses(flags));
        command.addAll(List.of("--node", Integer.toString(node), "--nodes", nodes));
        started.add(new ProcessBuilder(command).inheritIO().start());
      }
      int worst = 0;
      for (Process process : started) {
        worst = Math.max(worst, process.waitFor());
      }
      return worst;
    } finally {
      started.forEach(Process::destroyForcibly);
    }
  }

  private static List<String> withoutProcesses(List<String> flags) {
    List<String> kept = new ArrayList<>(flags);
    int at = kept.indexOf("--processes");
    if (at >= 0) {
      kept.subList(at, at + 2).clear();
    }
    return kept;
  }
}
