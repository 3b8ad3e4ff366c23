package io.faro;

import static io.faro.Checks.assertSays;
import static io.faro.Checks.drainLongs;
import static io.faro.Checks.failsBy;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A node that is added to a session, drained and removed, and another one that gets its number. */
@Timeout(60)
class ChangingSessionTest {
  private static final class Recorder implements SessionListener {
    final BlockingQueue<String> events = new LinkedBlockingQueue<>();

    @Override
    public void nodeAdded(int node) {
      events.add("added " + node);
    }

    @Override
    public void nodeDrained(int node) {
      events.add("drained " + node);
    }

    @Override
    public void nodeRemoved(int node) {
      events.add("removed " + node);
    }
  }

  private static Session open(int node, String nodes, String id) throws InterruptedException {
    return Session.open(
        SessionConfig.builder()
            .cluster(node, List.of(nodes.split(",")))
            .set(Setting.CLUSTER_ID, id)
            .set(Setting.CLUSTER_NODE_LIMIT, 4)
            .build());
  }

  /** Sends a row to each worker of a query and returns the sum of what comes. */
  private static long exchange(Worker worker, QueryId query, int workers) throws InterruptedException {
    long[] sum = {0};
    try (Shuffle shuffle = worker.openShuffle(new ShuffleSpec(query, 0, 8))) {
      LongSender sender = shuffle.sender().longs();
      for (int receiver = 0; receiver < workers; receiver++) {
        sender.send(receiver, 1 + worker.number());
      }
      shuffle.sender().finish();
      drainLongs(shuffle, row -> sum[0] += row);
    }
    worker.endQuery(query);
    worker.releaseOwnership();
    return sum[0];
  }

  @Test
  void aNodeIsAddedDrainedAndRemovedAndItsNumberIsUsedAgain() throws Exception {
    List<String> addresses = Cluster.heldAddresses(3);
    String id = addresses.get(0);
    Recorder recorder = new Recorder();
    try (Session session = open(0, addresses.get(0), id)) {
      session.listen(recorder);
      assertEquals(4, session.nodeCount());
      for (String address : addresses.subList(1, 3)) {
        session.addNode(1, address);
        assertSays(
            assertThrows(FaroException.class, () -> session.addNode(1, address)),
            Code.WRONG_STATE,
            "remove it first");
        try (Session added = open(1, addresses.get(0) + "," + address, id)) {
          assertEquals("added 1", recorder.events.take());
          QueryId query = session.beginQuery();
          session.declareQuery(query, 0, 1);
          added.declareQuery(query, 0, 1);
          long[] theirs = {0};
          Thread other =
              new Thread(
                  () -> {
                    try {
                      theirs[0] = exchange(added.workers().get(0), query, 2);
                    } catch (InterruptedException interrupted) {
                      throw new AssertionError(interrupted);
                    }
                  });
          other.start();
          assertEquals(3, exchange(session.workers().get(0), query, 2));
          other.join();
          assertEquals(3, theirs[0]);
          session.drainNode(1);
          added.drainNode(1);
          assertEquals("drained 1", recorder.events.take());
          assertFalse(session.hasNode(1));
        }
        session.removeNode(1);
        assertEquals("removed 1", recorder.events.take());
      }
      failsBy(Code.INVALID_ARGUMENT, () -> session.removeNode(1));
      failsBy(Code.INVALID_ARGUMENT, () -> session.drainNode(4));
      assertTrue(session.hasNode(0));
    }
  }
}
