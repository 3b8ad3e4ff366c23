package io.faro;

import static io.faro.Checks.failsBy;
import static io.faro.Checks.messageOf;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A JVM that is killed when it is connected and the cluster is not, with its first rows on their way, in the middle of a
 * shuffle, with rows in overflow, when all its rows are finished, after the end of its query, or while it closes its
 * session. In the phases of the shuffle it also is stopped for longer than the time limit, and, except for overflow, cut off
 * from the network.
 */
@Timeout(30)
class PeerLossTest {
  private static final Duration LIMIT = Duration.ofSeconds(20);
  private static final Duration LIVENESS = Duration.ofSeconds(2);
  private static final Duration TOLD = LIVENESS.plusSeconds(1);

  private static SessionConfig.Builder config(int node, String nodes, String transport) {
    return Cluster.config(node, List.of(nodes.split(",")))
        .set(Setting.LIVENESS_TIMEOUT_MS, LIVENESS.toMillis())
        .set(Setting.SECURITY_OPEN, nodes.startsWith("127.") ? 0 : 1)
        .set(Setting.TRANSPORT, transport);
  }

  enum Fault {
    KILLED,
    STOPPED,
    /** Its cable is pulled. */
    CUT
  }

  /** How far node 1 comes. */
  enum Phase {
    FIRST_ROWS,
    MID_SHUFFLE,
    /** It sends while it holds a batch: what the ring has no room for is spilled. */
    OVERFLOW,
    FINISH,
    /** Its query has ended, everywhere. */
    ENDED,
    /** In Session.close, which waits for a batch that is held. */
    CLOSE;

    boolean isOfAShuffle() {
      return compareTo(FINISH) <= 0;
    }
  }

  private static ShuffleSpec spec(QueryId query, int stage, int sender, int receiver) {
    return new ShuffleSpec(query, stage, Long.BYTES, new int[] {sender}, new int[] {receiver});
  }

  /** Node 1, in a JVM of its own: goes up to a phase, says so, and stays there. */
  public static final class Node1 {
    private static Phase phase;
    private static Session session;
    private static Worker worker;

    public static void main(String[] arguments) throws Exception {
      phase = Phase.valueOf(arguments[2]);
      SessionConfig.Builder config = config(1, arguments[0], arguments[1]);
      session = Session.open(config.set(Setting.CLOSE_TIMEOUT_MS, LIMIT.toMillis()).build());
      worker = session.workers().get(0);
      QueryId query = ChildJvm.readQuery();
      Shuffle shuffle = worker.openShuffle(spec(query, 1, 1, 0));
      LongSender sender = shuffle.sender().longs();
      sender.send(0, 0);
      shuffle.sender().flush();
      if (phase == Phase.MID_SHUFFLE) {
        System.out.println(phase);
        try {
          for (long i = 1; ; i++) {
            sender.send(0, i);
          }
        } catch (FaroException givenUp) {
          System.out.println(givenUp.getMessage());
          return;
        }
      }
      if (phase == Phase.OVERFLOW) {
        overflow(query, sender);
      }
      if (phase.compareTo(Phase.FINISH) >= 0) {
        shuffle.sender().finish();
        shuffle.close();
      }
      if (phase.compareTo(Phase.ENDED) >= 0) {
        worker.endQuery(query);
      }
      if (phase == Phase.CLOSE) {
        close();
      }
      System.out.println(phase);
      worker.waitUntil(() -> false);
    }

    private static void overflow(QueryId query, LongSender sender) throws Exception {
      Shuffle other = worker.openShuffle(spec(query, 2, 0, 1));
      Batch held = other.receiver().newBatch();
      other.receiver().receive(held);
      for (long i = 1; session.metrics().overflowMemoryBytes() == 0; i++) {
        sender.send(0, i);
      }
      System.out.println(phase);
      Thread.sleep(Long.MAX_VALUE); // no call, so that nothing of it moves on
    }

    private static void close() throws Exception {
      QueryId alone = session.beginQuery();
      session.declareQuery(alone, 1);
      Shuffle own = worker.openShuffle(spec(alone, 1, 1, 1));
      own.sender().longs().send(0, 0);
      own.sender().flush();
      own.receiver().receive(own.receiver().newBatch());
      Thread closing = Thread.currentThread();
      new Thread(
              () -> {
                while (!isInNativeClose(closing)) {
                  Thread.onSpinWait();
                }
                System.out.println(phase);
              })
          .start();
      session.close();
      System.out.println("closed");
    }

    private static boolean isInNativeClose(Thread thread) {
      StackTraceElement[] calls = thread.getStackTrace();
      return calls.length > 0
          && calls[0].isNativeMethod()
          && calls[0].getClassName().equals(Session.class.getName())
          && calls[0].getMethodName().equals("close");
    }
  }

  @ParameterizedTest
  @CsvSource({
    "KILLED,FIRST_ROWS,shm", "KILLED,FIRST_ROWS,tcp", "KILLED,MID_SHUFFLE,shm",
    "KILLED,MID_SHUFFLE,tcp", "KILLED,OVERFLOW,shm", "KILLED,OVERFLOW,tcp", "KILLED,FINISH,shm",
    "KILLED,FINISH,tcp", "KILLED,ENDED,shm", "KILLED,ENDED,tcp", "KILLED,CLOSE,shm",
    "KILLED,CLOSE,tcp", "STOPPED,FIRST_ROWS,shm", "STOPPED,MID_SHUFFLE,shm",
    "STOPPED,MID_SHUFFLE,tcp", "STOPPED,OVERFLOW,tcp", "STOPPED,FINISH,tcp", "CUT,FIRST_ROWS,tcp",
    "CUT,MID_SHUFFLE,tcp", "CUT,FINISH,tcp"
  })
  void endsWhatNeedsItWithItsName(Fault fault, Phase phase, String transport) throws Exception {
    try (Cable cable = fault == Fault.CUT ? Cable.lay() : null) {
      endsWhatNeedsItWithItsName(fault, phase, transport, cable);
    }
  }

  /** @param cable null: both are on loopback */
  private static void endsWhatNeedsItWithItsName(
      Fault fault, Phase phase, String transport, Cable cable) throws Exception {
    List<String> addresses = cable == null ? Cluster.heldAddresses(2) : cable.addresses();
    String nodes = String.join(",", addresses);
    List<String> beyond = cable == null ? List.of() : cable.beyond();
    try (ChildJvm other = new ChildJvm(beyond, Node1.class, nodes, transport, phase.name());
        Session session = Session.open(config(0, nodes, transport).build())) {
      QueryId query = session.beginQuery();
      other.tell(query);
      Worker worker = session.workers().get(0);
      Shuffle shuffle = worker.openShuffle(spec(query, 1, 1, 0));
      Shuffle back = phase == Phase.OVERFLOW ? worker.openShuffle(spec(query, 2, 0, 1)) : null;
      if (back != null) {
        back.sender().longs().send(0, 0);
        back.sender().flush();
      }
      Batch batch = shuffle.receiver().newBatch();
      assertEquals(Outcome.DONE, shuffle.receiver().receive(batch));
      assertEquals(0, batch.getLong(0));
      if (!phase.isOfAShuffle()) {
        assertEquals(Outcome.END_OF_STREAM, shuffle.receiver().receive(batch));
        shuffle.close();
        worker.endQuery(query); // it has ended there, too: whatever happens now is no loss
      }
      assertEquals(phase.name(), other.line());
      switch (fault) {
        case KILLED -> other.kill();
        case STOPPED -> other.stop();
        case CUT -> cable.pull();
      }
      long hit = System.nanoTime();
      Executable use = () -> {
        while (shuffle.receiver().receive(batch, Wait.atMost(LIMIT)) == Outcome.DONE) {}
        shuffle.close();
        worker.endQuery(query);
      };
      isLost(addresses.get(1), phase.isOfAShuffle() ? use : () -> useNode1(session, worker));
      assertSoon(hit);
      shuffle.close();
      if (back != null) {
        back.close();
      }
      anotherQueryOfThisNodeAloneGoesOn(session, worker);
      if (fault == Fault.STOPPED) {
        other.goOn();
      }
      if (fault == Fault.STOPPED && phase == Phase.MID_SHUFFLE) {
        String givenUp = other.line();
        assertTrue(givenUp.contains("it gave up"), givenUp);
      } else if (fault == Fault.KILLED) {
        assertNull(other.line()); // it has not come further
      }
    }
  }

  /** A new query that needs node 1. */
  private static void useNode1(Session session, Worker worker) throws Exception {
    QueryId query = session.beginQuery();
    try (Shuffle shuffle = worker.openShuffle(spec(query, 1, 1, 0))) {
      shuffle.receiver().receive(shuffle.receiver().newBatch(), Wait.atMost(LIMIT));
    }
  }

  private static void isLost(String address, Executable use) {
    FaroException lost = failsBy(Code.PEER_LOST, use, address);
    assertEquals(Category.PEER, lost.category());
  }

  private static void anotherQueryOfThisNodeAloneGoesOn(Session session, Worker worker)
      throws InterruptedException {
    QueryId alone = session.beginQuery();
    session.declareQuery(alone, 0);
    try (Shuffle own = worker.openShuffle(spec(alone, 1, 0, 0))) {
      assertEquals(Outcome.DONE, own.sender().finish());
      assertEquals(Outcome.END_OF_STREAM, own.receiver().receive(own.receiver().newBatch()));
    }
    worker.endQuery(alone);
  }

  private static void assertSoon(long hit) {
    Duration told = Duration.ofNanos(System.nanoTime() - hit);
    assertTrue(told.compareTo(TOLD) < 0, "told after " + told);
  }

  /** Node 1 of three, in a JVM of its own: the third never comes. */
  public static final class Connecting {
    public static void main(String[] arguments) throws InterruptedException {
      Faro.ensureAvailable();
      System.out.println("connecting");
      Session.open(config(1, arguments[0], arguments[1]).build());
    }
  }

  /** It may start again: until its time is over, open waits for that. */
  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void openingTellsWhyANodeThatWasConnectedIsNot(String transport) throws Exception {
    List<String> addresses = Cluster.heldAddresses(3);
    String nodes = String.join(",", addresses);
    SessionConfig own = config(0, nodes, transport).set(Setting.CONNECT_TIMEOUT_MS, 4000).build();
    CompletableFuture<String> waitsFor = new CompletableFuture<>(); // said at half of that time
    LogLines lines =
        new LogLines(
            line -> {
              if (line.getMessage().contains("still waits for")) {
                waitsFor.complete(line.getMessage());
              }
            });
    try (ChildJvm other = new ChildJvm(Connecting.class, nodes, transport)) {
      assertEquals("connecting", other.line());
      CompletableFuture<String> opening = CompletableFuture.supplyAsync(() -> messageOf(() -> Session.open(own)));
      String node1 = "node 1 (" + addresses.get(1) + "): ";
      String before = waitsFor.get();
      assertTrue(before.contains(node1 + "connected, waits for others"), before);
      other.kill();
      String failed = opening.get();
      assertTrue(failed.contains(node1 + "the connection was closed by the peer"), failed);
    } finally {
      lines.close();
    }
  }
}
