package io.faro.bench;

import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
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

  /** Node i runs in C++ where languages has a c at i, in Java where it has a j. */
  @ParameterizedTest
  @CsvSource({"KILL,cjj,shm", "KILL,jcc,tcp", "STOP,cjj,tcp", "STOP,jcc,shm"})
  void survivorsInBothLanguagesNameIt(String signal, String languages, String transport) throws Exception {
    Map<String, String> environment =
        Map.of(
            "FARO_LIVENESS_TIMEOUT_MS", Integer.toString(1000 * LIVENESS_S),
            "FARO_COUNTERS_FOLDER", folder.toString());
    List<String> flags = List.of("--rows", "100000000", "--repetitions", "1", "--transport", transport);
    try (Nodes nodes = new Nodes(folder, languages, environment, flags)) {
      while (rowsThatArrived() < languages.length()) {
        assertTrue(
            nodes.processes().stream().allMatch(Process::isAlive), nodes.text(0) + nodes.text(1) + nodes.text(2));
      }
      Process victim = nodes.processes().get(2);
      new ProcessBuilder("kill", "-" + signal, Long.toString(victim.pid())).start().waitFor();
      for (int node = 0; node < 2; node++) {
        Process survivor = nodes.processes().get(node);
        assertTrue(survivor.waitFor(LIVENESS_S + ENDING_S, TimeUnit.SECONDS), "node " + node + " hangs");
        assertNotEquals(0, survivor.exitValue());
        assertTrue(nodes.text(node).contains("node 2 (" + nodes.address(2) + ") is lost"), nodes.text(node));
      }
    }
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
}
