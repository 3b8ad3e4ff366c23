package io.faro;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A JVM that is killed, stopped for longer than the time limit, or cut off from the network, in each phase of its life in
 * a cluster.
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
    FINISH,
    CLOSE
  }

  /** Node 1, in a JVM of its own: goes up to a phase, says so, and stays there. */
  public static final class Node1 {
    public static void main(String[] arguments) throws Exception {
      Phase phase = Phase.valueOf(arguments[2]);
      Session session = Session.open(config(1, arguments[0], arguments[1]).build());
      Worker worker = session.workers().get(0);
      QueryId query = ChildJvm.readQuery();
      Shuffle shuffle = worker.openShuffle(new ShuffleSpec(query, 1, 8, new int[] {1}, new int[] {0}));
      LongSender sender = shuffle.longSender();
      sender.send(0, 0);
      shuffle.flush();
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
      if (phase.compareTo(Phase.FINISH) >= 0) {
        shuffle.finish();
        shuffle.close();
      }
      if (phase == Phase.CLOSE) {
        worker.endQuery(query);
      }
      System.out.println(phase);
      worker.waitUntil(() -> false);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "KILLED,FIRST_ROWS,shm", "KILLED,FIRST_ROWS,tcp", "KILLED,MID_SHUFFLE,shm",
    "KILLED,MID_SHUFFLE,tcp", "KILLED,FINISH,shm", "KILLED,FINISH,tcp", "KILLED,CLOSE,shm",
    "KILLED,CLOSE,tcp", "STOPPED,FIRST_ROWS,shm", "STOPPED,MID_SHUFFLE,shm",
    "STOPPED,MID_SHUFFLE,tcp", "STOPPED,FINISH,tcp", "CUT,FIRST_ROWS,tcp", "CUT,MID_SHUFFLE,tcp",
    "CUT,FINISH,tcp"
  })
  void endsWhatNeedsItWithItsName(Fault fault, Phase phase, String transport) throws Exception {
    try (Cable cable = fault == Fault.CUT ? Cable.lay() : null) {
      endsWhatNeedsItWithItsName(fault, phase, transport, cable);
    }
  }

  /** @param cable null: both are on loopback */
  private static void endsWhatNeedsItWithItsName(
      Fault fault, Phase phase, String transport, Cable cable) throws Exception {
    List<String> addresses = cable == null ? Cluster.freeAddresses(2) : cable.addresses();
    String nodes = String.join(",", addresses);
    List<String> beyond = cable == null ? List.of() : cable.beyond();
    try (ChildJvm other = new ChildJvm(beyond, Node1.class, nodes, transport, phase.name());
        Session session = Session.open(config(0, nodes, transport).build())) {
      QueryId query = session.beginQuery();
      other.tell(query);
      Worker worker = session.workers().get(0);
      Shuffle shuffle = worker.openShuffle(new ShuffleSpec(query, 1, 8, new int[] {1}, new int[] {0}));
      Frame frame = shuffle.newFrame();
      assertEquals(Outcome.DONE, shuffle.take(frame));
      assertEquals(0, frame.getLong(0));
      if (phase == Phase.CLOSE) {
        assertEquals(Outcome.END_OF_STREAM, shuffle.take(frame));
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
      if (phase == Phase.CLOSE) {
        isLost(addresses.get(1), () -> useNode1(session, worker));
      } else {
        isLost(
            addresses.get(1),
            () -> {
              while (shuffle.take(frame, LIMIT) == Outcome.DONE) {}
              shuffle.close();
              worker.endQuery(query);
            });
        Duration told = Duration.ofNanos(System.nanoTime() - hit);
        assertTrue(told.compareTo(TOLD) < 0, "told after " + told);
        shuffle.close();
      }
      anotherQueryOfThisNodeAloneGoesOn(session, worker);
      if (fault == Fault.STOPPED) {
        other.goOn();
      }
      if (fault == Fault.STOPPED && phase == Phase.MID_SHUFFLE) {
        String givenUp = other.line();
        assertTrue(givenUp.contains("it gave up"), givenUp);
      }
    }
  }

  /** A new query that needs node 1. */
  private static void useNode1(Session session, Worker worker) throws Exception {
    QueryId query = session.beginQuery();
    try (Shuffle shuffle =
        worker.openShuffle(new ShuffleSpec(query, 1, 8, new int[] {1}, new int[] {0}))) {
      shuffle.take(shuffle.newFrame(), LIMIT);
    }
  }

  private static void isLost(String address, Executable use) {
    FaroException lost = assertThrows(FaroException.class, use);
    assertEquals(Code.PEER_LOST, lost.code());
    assertEquals(Category.PEER, lost.category());
    assertTrue(lost.getMessage().contains(address), lost.getMessage());
  }

  private static void anotherQueryOfThisNodeAloneGoesOn(Session session, Worker worker)
      throws InterruptedException {
    QueryId alone = session.beginQuery();
    session.declareQuery(alone, 0);
    try (Shuffle own =
        worker.openShuffle(new ShuffleSpec(alone, 1, 8, new int[] {0}, new int[] {0}))) {
      assertEquals(Outcome.DONE, own.finish());
      assertEquals(Outcome.END_OF_STREAM, own.take(own.newFrame()));
    }
    worker.endQuery(alone);
  }

  /** Node 1 of three in a JVM of its own; the third never comes, so that it stays in the handshake. */
  public static final class Connecting {
    public static void main(String[] arguments) {
      System.out.println("connecting");
      Session.open(config(1, arguments[0], arguments[1]).build());
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void openingEndsWithTheNameOfANodeThatDiedInTheHandshake(String transport) throws Exception {
    List<String> addresses = new ArrayList<>(Cluster.freeAddresses(3));
    String nodes = String.join(",", addresses);
    SessionConfig own = config(0, nodes, transport).set(Setting.CONNECT_TIMEOUT_MS, 4000).build();
    try (ChildJvm other = new ChildJvm(Connecting.class, nodes, transport)) {
      assertEquals("connecting", other.line());
      Thread killer =
          new Thread(
              () -> {
                try {
                  other.kill();
                } catch (InterruptedException impossible) {
                  throw new AssertionError(impossible);
                }
              });
      killer.start();
      FaroException failed = assertThrows(FaroException.class, () -> Session.open(own));
      killer.join();
      assertTrue(failed.getMessage().contains(addresses.get(1)), failed.getMessage());
    }
  }
}
