package io.faro.bench;

import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.sockets.HeldAddresses;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Clusters in both languages, of which the last node is killed or stopped while rows are on their way. */
@Timeout(60)
class LostNodeTest {
  private static final int LIVENESS_S = 2;
  private static final int ENDING_S = 20; // of a JVM, on a busy machine

  @TempDir Path folder;

  private final List<Process> started = new ArrayList<>();

  /** Node i runs in C++ where languages has a c at i, in Java where it has a j. */
  @ParameterizedTest
  @CsvSource({"KILL,cjj,shm", "KILL,jcc,tcp", "STOP,cjj,tcp", "STOP,jcc,shm"})
  void survivorsInBothLanguagesNameIt(String signal, String languages, String transport)
      throws Exception {
    try (HeldAddresses held = new HeldAddresses(languages.length(), Main.PORTS, List.of("127.0.0.1"))) {
      String nodes = String.join(",", held.all());
      for (int node = 0; node < languages.length(); node++) {
        started.add(start(languages.charAt(node), node, nodes, transport));
      }
      while (rowsThatArrived() < languages.length()) {
        assertTrue(started.stream().allMatch(Process::isAlive), text(0) + text(1) + text(2));
      }
      Process victim = started.get(2);
      new ProcessBuilder("kill", "-" + signal, Long.toString(victim.pid())).start().waitFor();
      for (int node = 0; node < 2; node++) {
        Process survivor = started.get(node);
        assertTrue(
            survivor.waitFor(LIVENESS_S + ENDING_S, TimeUnit.SECONDS), "node " + node + " hangs");
        assertNotEquals(0, survivor.exitValue());
        assertTrue(text(node).contains("node 2 (" + nodes.split(",")[2] + ") is lost"), text(node));
      }
    } finally {
      started.forEach(Process::destroyForcibly);
    }
  }

  private Process start(char language, int node, String nodes, String transport) throws IOException {
    List<String> command = new ArrayList<>();
    if (language == 'c') {
      command.addAll(List.of(System.getProperty("faro.command"), "bench"));
    } else {
      command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
      command.addAll(List.of("-Xcheck:jni", "-Xmx128m", "-XX:TieredStopAtLevel=1"));
      command.addAll(List.of("-cp", System.getProperty("java.class.path"), Main.class.getName()));
    }
    command.addAll(List.of("two-stage", "--rows", "100000000", "--repetitions", "1"));
    command.addAll(List.of("--transport", transport));
    command.addAll(List.of("--node", Integer.toString(node), "--nodes", nodes));
    ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
    builder.environment().put("FARO_LIVENESS_TIMEOUT_MS", Integer.toString(1000 * LIVENESS_S));
    builder.environment().put("FARO_COUNTERS_FOLDER", folder.toString());
    return builder.redirectOutput(folder.resolve("node" + node).toFile()).start();
  }

  /** How many workers have received rows, as their counters say. */
  private int rowsThatArrived() throws Exception {
    Path seen = folder.resolve("seen");
    List<String> command = new ArrayList<>(List.of(System.getProperty("faro.command"), "stat"));
    command.addAll(List.of("--once", "--json", "--interval", "0.05", "--folder", folder.toString()));
    new ProcessBuilder(command)
        .redirectError(ProcessBuilder.Redirect.DISCARD)
        .redirectOutput(seen.toFile())
        .start()
        .waitFor();
    return Files.readString(seen).split("\"rows_received\": *[1-9]", -1).length - 1;
  }

  private String text(int node) throws IOException {
    return JniCheck.checked(
        Files.readString(folder.resolve("node" + node), StandardCharsets.UTF_8));
  }
}
