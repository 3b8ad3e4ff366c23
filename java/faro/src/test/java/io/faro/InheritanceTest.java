package io.faro;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What other programs, which a JVM with Faro starts or becomes, have of it: nothing. */
class InheritanceTest {
  private static final Path OWN = Path.of("/proc/self/fd");
  private static final long CLOSED_BY_EXEC = 02000000; // O_CLOEXEC

  @ParameterizedTest
  @ValueSource(strings = {"tcp", "shm"})
  void noDescriptorStaysOpenInAnotherProgram(String transport) throws Exception {
    Map<String, String> before = descriptors();
    try (EndpointSide server =
            new EndpointSide(
                new EndpointSpec().withAcceptor(request -> ChannelAcceptance.by(0)),
                config -> config.set(Setting.TRANSPORT, transport));
        EndpointSide client = new EndpointSide(transport);
        Session alone = Session.open(SessionConfig.builder().cluster(0, List.of("127.0.0.1:0")).build())) {
      assertEquals(0, alone.node());
      long channel = client.connect(server, new ChannelSpec());
      assertEquals(channel, client.expectOpened());
      Map<String, String> own = descriptors();
      own.entrySet().removeAll(before.entrySet());
      own.values().removeIf(target -> target.endsWith(".jar") || target.startsWith("/proc/")); // the JVM's
      assertTrue(own.values().stream().filter(target -> target.startsWith("socket:")).count() >= 4, own::toString);
      for (String number : own.keySet()) {
        assertTrue((flags(number) & CLOSED_BY_EXEC) != 0, () -> number + " is " + own.get(number));
        assertTrue(Integer.parseInt(number) > 2, own::toString);
      }
    }
  }

  @Test
  void aProgramThatItStartsHasNoneOfThem() throws Exception {
    try (Cluster cluster = new Cluster("tcp", 2, 1)) {
      assertEquals(0, cluster.session(0).node());
      Process child = new ProcessBuilder("ls", "-l", "/proc/self/fd").redirectErrorStream(true).start();
      String listed = new String(child.getInputStream().readAllBytes(), UTF_8);
      assertEquals(0, child.waitFor(), listed);
      for (String what : new String[] {"socket:", "memfd:", "eventpoll", "eventfd", "timerfd", "faro"}) {
        assertTrue(!listed.contains(what), listed);
      }
    }
  }

  private static Map<String, String> descriptors() throws IOException {
    Map<String, String> targets = new TreeMap<>();
    try (Stream<Path> all = Files.list(OWN)) {
      for (Path each : all.toList()) {
        if (Files.isSymbolicLink(each)) { // not that of the listing
          targets.put(each.getFileName().toString(), Files.readSymbolicLink(each).toString());
        }
      }
    }
    return targets;
  }

  private static long flags(String number) throws IOException {
    for (String line : Files.readAllLines(Path.of("/proc/self/fdinfo", number))) {
      if (line.startsWith("flags:")) {
        return Long.parseLong(line.substring("flags:".length()).trim(), 8);
      }
    }
    throw new IOException("no flags of " + number);
  }
}
