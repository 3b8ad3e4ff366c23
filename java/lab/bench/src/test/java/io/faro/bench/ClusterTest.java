package io.faro.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.sockets.HeldAddresses;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
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

  private final List<Process> started = new ArrayList<>();

  /** Node i runs in C++ where languages has a c at i, in Java where it has a j. */
  @ParameterizedTest
  @CsvSource({"jj,shm", "cj,shm", "jc,shm", "jcjc,shm", "jj,tcp", "cj,tcp", "jc,tcp", "jcjc,tcp"})
  void nodesInBothLanguagesCarryTheJobTogether(String languages, String transport) throws Exception {
    List<String> flags =
        List.of("--rows", ROWS, "--workers", "2", "--repetitions", "1", "--transport", transport);
    String first = run(languages, flags);
    String verified = languages.charAt(0) == 'j' ? "\"verified\":true" : "verified";
    assertTrue(first.contains(verified), first);
  }

  @ParameterizedTest
  @EnumSource(value = Carrier.class, names = {"NIO", "NIO_PAPER"})
  void theSocketsBaselineCarriesTheJob(Carrier carrier) throws Exception {
    String rows = carrier == Carrier.NIO ? ROWS : "2000";
    List<String> flags =
        List.of("--rows", rows, "--workers", "2", "--repetitions", "1", "--transport", carrier.toString());
    String first = run("jj", flags);
    assertTrue(first.contains("\"verified\":true"), first);
  }

  @ParameterizedTest
  @EnumSource(RowsLevel.class)
  void everyLevelOfTheApiCarriesTheJob(RowsLevel level) throws Exception {
    String name = level.name().toLowerCase(Locale.ROOT);
    List<String> flags =
        List.of("--rows", ROWS, "--repetitions", "1", "--transport", "shm", "--level", name);
    String first = run("jj", flags);
    assertTrue(first.contains("\"verified\":true"), first);
  }

  @Test
  void theCommandShowsJavaBesideCpp() throws Exception {
    List<String> command = new ArrayList<>(List.of(System.getProperty("faro.command"), "bench"));
    command.addAll(List.of("two-stage", "--java", System.getProperty("java.class.path")));
    command.addAll(List.of("--transport", "shm,java-shm,java-nio", "--processes", "2"));
    command.addAll(List.of("--rows", "20000", "--repetitions", "1"));
    ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
    builder.environment().put("JAVA_HOME", System.getProperty("java.home"));
    builder.environment().put("JDK_JAVA_OPTIONS", "-Xcheck:jni"); // it takes no line of Java's but its result
    Process process = builder.redirectOutput(output(0).toFile()).start();
    started.add(process);
    assertTrue(process.waitFor(50, TimeUnit.SECONDS));
    assertEquals(0, process.exitValue(), text(0));
    assertEquals(3, text(0).split(" verified", -1).length - 1, text(0));
  }

  /** The output of node 0. */
  private String run(String languages, List<String> flags) throws Exception {
    try (HeldAddresses held = new HeldAddresses(languages.length(), Main.PORTS, List.of("127.0.0.1"))) {
      String nodes = String.join(",", held.all());
      for (int node = 0; node < languages.length(); node++) {
        List<String> command = new ArrayList<>();
        if (languages.charAt(node) == 'c') {
          command.addAll(List.of(System.getProperty("faro.command"), "bench"));
        } else {
          command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
          command.addAll(List.of("-Xcheck:jni", "-Xmx128m", "-XX:TieredStopAtLevel=1"));
          command.addAll(List.of("-cp", System.getProperty("java.class.path"), Main.class.getName()));
        }
        command.add("two-stage");
        command.addAll(flags);
        command.addAll(List.of("--node", Integer.toString(node), "--nodes", nodes));
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        started.add(builder.redirectOutput(output(node).toFile()).start());
      }
      for (int node = 0; node < started.size(); node++) {
        assertTrue(started.get(node).waitFor(50, TimeUnit.SECONDS), "node " + node + " hangs");
        assertEquals(0, started.get(node).exitValue(), "node " + node + ": " + text(node));
      }
      return text(0);
    } finally {
      started.forEach(Process::destroyForcibly);
    }
  }

  private Path output(int node) {
    return folder.resolve("node" + node);
  }

  private String text(int node) throws Exception {
    return JniCheck.checked(Files.readString(output(node), StandardCharsets.UTF_8));
  }
}
