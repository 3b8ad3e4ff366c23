package io.faro.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** The two-stage job on clusters of processes; its result is checked by node 0. */
@Timeout(60)
class ClusterTest {
  private static final String ROWS = "200000";

  @TempDir Path folder;

  /** Node i runs in C++ where languages has a c at i, in Java where it has a j. */
  @ParameterizedTest
  @CsvSource({"jj,shm", "cj,shm", "jc,shm", "jcjc,shm", "jj,tcp", "cj,tcp", "jc,tcp", "jcjc,tcp"})
  void nodesInBothLanguagesCarryTheJobTogether(String languages, String transport) throws Exception {
    carryTheJob(languages, transport, "--rows", ROWS, "--workers", "2");
  }

  @ParameterizedTest
  @EnumSource(value = Carrier.class, names = {"NIO", "NIO_PAPER"})
  void theSocketsBaselineCarriesTheJob(Carrier carrier) throws Exception {
    String rows = carrier == Carrier.NIO ? ROWS : "2000";
    carryTheJob("jj", carrier.toString(), "--rows", rows, "--workers", "2");
  }

  @ParameterizedTest
  @EnumSource(RowsLevel.class)
  void everyLevelOfTheApiCarriesTheJob(RowsLevel level) throws Exception {
    String name = level.name().toLowerCase(Locale.ROOT);
    carryTheJob("jj", "shm", "--rows", ROWS, "--level", name);
  }

  private void carryTheJob(String languages, String transport, String... more) throws Exception {
    List<String> flags = new ArrayList<>(List.of("--repetitions", "1", "--transport", transport));
    flags.addAll(List.of(more));
    try (Nodes nodes = new Nodes(folder, languages, Map.of(), flags)) {
      for (int node = 0; node < languages.length(); node++) {
        Process process = nodes.processes().get(node);
        assertTrue(process.waitFor(50, TimeUnit.SECONDS), "node " + node + " hangs");
        assertEquals(0, process.exitValue(), "node " + node + ": " + nodes.texts());
      }
      String verified = languages.charAt(0) == 'j' ? "\"verified\":true" : "verified";
      assertTrue(nodes.text(0).contains(verified), nodes.text(0));
    }
  }
}
