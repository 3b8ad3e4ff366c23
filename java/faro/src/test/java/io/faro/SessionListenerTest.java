package io.faro;

import static io.faro.Checks.assertSays;
import static io.faro.Checks.failsBy;
import static io.faro.Checks.failure;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What a session tells without being asked. */
@Timeout(60)
class SessionListenerTest {
  /** What happened, in order. */
  private record Event(String what, int node, QueryId query, FaroException cause) {}

  private static final class Recorder implements SessionListener {
    final BlockingQueue<Event> events = new LinkedBlockingQueue<>();

    @Override
    public void nodeLost(int node, FaroException cause) {
      events.add(new Event("lost", node, null, cause));
    }

    @Override
    public void nodeLeft(int node) {
      events.add(new Event("left", node, null, null));
    }

    @Override
    public void nodeReturned(int node) {
      events.add(new Event("returned", node, null, null));
    }

    @Override
    public void queryFailed(QueryId query, FaroException cause) {
      events.add(new Event("failed", -1, query, cause));
    }

    /** The next one that is no failed query, of which a loss may bring some before it or after. */
    Event takeOfNode() throws InterruptedException {
      for (; ; ) {
        Event event = events.take();
        if (event.query() == null) {
          return event;
        }
      }
    }
  }

  /** Node 1, which closes its session when it is told anything. */
  public static final class Node1 {
    public static void main(String[] arguments) throws Exception {
      Session session = Session.open(Cluster.config(1, List.of(arguments[0].split(","))).build());
      System.out.println("open");
      ChildJvm.readLine();
      session.close();
    }
  }

  @Test
  void nodesAreLostLeaveAndReturn() throws Exception {
    List<String> addresses = Cluster.heldAddresses(2);
    String nodes = String.join(",", addresses);
    Recorder recorder = new Recorder();
    ChildJvm other = new ChildJvm(Node1.class, nodes);
    try (Session session = Session.open(Cluster.config(0, addresses).build())) {
      session.listen(recorder);
      assertEquals("open", other.line());
      other.kill();
      Event lost = recorder.takeOfNode();
      assertEquals("lost", lost.what());
      assertEquals(1, lost.node());
      assertEquals(Code.PEER_LOST, lost.cause().code());
      assertEquals(OptionalInt.of(1), lost.cause().node());
      assertFalse(session.hasNode(1));

      other = new ChildJvm(Node1.class, nodes);
      assertEquals(new Event("returned", 1, null, null), recorder.takeOfNode());
      assertTrue(session.hasNode(1));
      assertEquals("open", other.line());
      other.tell("close");
      assertEquals(new Event("left", 1, null, null), recorder.takeOfNode());
    } finally {
      other.close();
    }
  }

  @Test
  void aFailedQueryIsToldOnEachNodeWithItsCause() throws Exception {
    try (Cluster cluster = new Cluster(2, 1, config -> {})) {
      List<Recorder> recorders = List.of(new Recorder(), new Recorder());
      for (int node = 0; node < 2; node++) {
        cluster.session(node).listen(recorders.get(node));
      }
      QueryId query = cluster.beginQuery();
      cluster.onEachWorker(
          worker -> {
            if (worker.number() == 1) {
              worker.endQuery(query, new IllegalStateException("no such table"));
            } else {
              failure(() -> worker.endQuery(query));
            }
          });
      for (Recorder recorder : recorders) {
        Event failed = recorder.events.take();
        assertEquals("failed", failed.what());
        assertEquals(query, failed.query());
        assertSays(failed.cause(), Code.QUERY_FAILED, "no such table");
        assertEquals(Optional.of(query), failed.cause().query());
        assertEquals(List.of(), List.copyOf(recorder.events));
      }
    }
  }

  /** The session is used meanwhile, and by it; its successor is told what comes later. */
  @Test
  void aListenerThatBlocksHoldsUpNobodyAndOneThatThrowsIsToldOn() throws Exception {
    CountDownLatch entered = new CountDownLatch(1);
    CountDownLatch goOn = new CountDownLatch(1);
    Recorder later = new Recorder();
    try (Cluster cluster = new Cluster(1, 1, config -> {})) {
      Session session = cluster.session(0);
      session.listen(
          new SessionListener() {
            @Override
            public void queryFailed(QueryId query, FaroException cause) {
              entered.countDown();
              try {
                goOn.await();
              } catch (InterruptedException interrupted) {
                throw new AssertionError(interrupted);
              }
              Thread.currentThread().setUncaughtExceptionHandler((thread, problem) -> session.listen(later));
              throw new IllegalStateException("mine");
            }
          });
      session.cancelQuery(session.beginQuery(), "first");
      entered.await();
      QueryId second = session.beginQuery();
      session.cancelQuery(second, "second");
      failure(() -> session.workers().get(0).endQuery(second));
      goOn.countDown();
      assertEquals(second, later.events.take().query());
    }
  }

  @Test
  void nobodyListensToASessionThatIsClosed() {
    Session session;
    try (Cluster cluster = new Cluster(1, 1, config -> {})) {
      session = cluster.session(0);
    }
    failsBy(Code.SESSION_CLOSED, () -> session.listen(new SessionListener() {}));
  }
}
