package io.faro;

import static io.faro.Checks.drainLongs;
import static io.faro.Checks.failsBy;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A JVM that is killed and starts again, while the session of this one stays open. */
@Timeout(60)
class ReturnTest {
  private static final Duration LIMIT = Duration.ofSeconds(20);
  private static final int RETURNS = 3;
  private static final int ROWS = 10_000;

  private static Session open(int node, String nodes, String transport) throws InterruptedException {
    return Session.open(Cluster.config(node, List.of(nodes.split(","))).set(Setting.TRANSPORT, transport).build());
  }

  /** Node 1: takes part in one query, and stays. */
  public static final class Node1 {
    public static void main(String[] arguments) throws Exception {
      Session session = open(1, arguments[0], arguments[1]);
      System.out.println("open");
      Worker worker = session.workers().get(0);
      System.out.println(exchange(worker, ChildJvm.readQuery()));
      worker.waitUntil(() -> false);
    }
  }

  /** Sends rows to both workers and returns the sum of those that come from both. */
  private static long exchange(Worker worker, QueryId query) throws InterruptedException {
    long[] sum = {0};
    try (Shuffle shuffle = worker.openShuffle(new ShuffleSpec(query, 0, 8))) {
      LongSender sender = shuffle.sender().longs();
      for (int i = 0; i < ROWS; i++) {
        sender.send(i % 2, i);
      }
      shuffle.sender().finish();
      drainLongs(shuffle, row -> sum[0] += row);
    }
    worker.endQuery(query);
    return sum[0];
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void aKilledJvmIsBackForTheNextQuery(String transport) throws Exception {
    String nodes = String.join(",", Cluster.heldAddresses(2));
    ChildJvm other = new ChildJvm(Node1.class, nodes, transport);
    try (Session session = open(0, nodes, transport)) {
      Worker worker = session.workers().get(0);
      for (int returns = 0; ; returns++) {
        assertEquals("open", other.line());
        assertTrue(session.awaitNode(1, Wait.atMost(LIMIT)));
        QueryId query = session.beginQuery();
        other.tell(query);
        long sum = exchange(worker, query) + Long.parseLong(other.line());
        assertEquals(2L * ROWS * (ROWS - 1) / 2, sum);
        if (returns == RETURNS) {
          return;
        }
        QueryId lost = session.beginQuery();
        other.kill();
        failsBy(Code.PEER_LOST, () -> exchange(worker, lost));
        assertFalse(session.awaitNode(1, Wait.atMost(Duration.ofMillis(1))));
        other = new ChildJvm(Node1.class, nodes, transport);
      }
    } finally {
      other.close();
    }
  }
}
