package io.faro;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.PrintStream;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Scanner;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A JVM that is killed in the middle of a shuffle. */
@Timeout(30)
class PeerLossTest {
  private static SessionConfig config(int node, String nodes, String transport) {
    return SessionConfig.builder()
        .cluster(node, List.of(nodes.split(",")))
        .set(Setting.TRANSPORT, transport)
        .build();
  }

  /** Node 1, in a JVM of its own: sends rows for ever. */
  public static final class Sender {
    public static void main(String[] arguments) throws Exception {
      Session session = Session.open(config(1, arguments[0], arguments[1]));
      Scanner plan = new Scanner(System.in, UTF_8);
      QueryId query = new QueryId(plan.nextLong(), plan.nextLong(), plan.nextInt());
      Shuffle shuffle = session.workers().get(0).openShuffle(new ShuffleSpec(query, 1, 8));
      LongSender sender = shuffle.longSender();
      for (long i = 0; ; i++) {
        sender.send(0, i);
      }
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void endsTheQueryWithItsName(String transport) throws Exception {
    List<String> addresses = Cluster.freeAddresses(2);
    String nodes = String.join(",", addresses);
    Process other = start(nodes, transport);
    try {
      try (Session session = Session.open(config(0, nodes, transport));
          PrintStream plan = new PrintStream(other.getOutputStream(), true, UTF_8)) {
        QueryId query = session.beginQuery();
        plan.println(query.counter() + " " + query.incarnation() + " " + query.issuer());
        Worker worker = session.workers().get(0);
        Shuffle shuffle = worker.openShuffle(new ShuffleSpec(query, 1, 8));
        Frame frame = shuffle.newFrame();
        assertEquals(Outcome.DONE, shuffle.take(frame));
        other.destroyForcibly().waitFor();
        FaroException lost =
            assertThrows(
                FaroException.class,
                () -> {
                  while (shuffle.take(frame, Duration.ofSeconds(20)) == Outcome.DONE) {}
                });
        assertEquals(Code.PEER_LOST, lost.code());
        assertTrue(lost.getMessage().contains(addresses.get(1)), lost.getMessage());
        shuffle.close();
        // Another query of this node alone goes on.
        QueryId alone = session.beginQuery();
        session.declareQuery(alone, 0);
        try (Shuffle own =
            worker.openShuffle(new ShuffleSpec(alone, 1, 8, new int[] {0}, new int[] {0}))) {
          assertEquals(Outcome.DONE, own.finish());
          assertEquals(Outcome.END_OF_STREAM, own.take(own.newFrame()));
        }
        worker.endQuery(alone);
      }
    } finally {
      other.destroyForcibly();
    }
  }

  private static Process start(String nodes, String transport) throws Exception {
    return new ProcessBuilder(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-cp",
            System.getProperty("java.class.path"),
            Sender.class.getName(),
            nodes,
            transport)
        .redirectError(ProcessBuilder.Redirect.INHERIT)
        .start();
  }
}
