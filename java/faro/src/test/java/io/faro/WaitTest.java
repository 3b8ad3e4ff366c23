package io.faro;

import static io.faro.Checks.failure;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** How long calls wait, and what they answer when that is over. */
@Timeout(20)
class WaitTest {
  private static final Wait<InterruptedException> NOT_AT_ALL = Wait.atMost(Duration.ZERO);
  private static final Wait<InterruptedException> SHORT = Wait.atMost(Duration.ofMillis(5));

  @Test
  void aNegativeTimeLimitIsRefusedByItsValue() {
    FaroException refused = failure(() -> Wait.atMost(Duration.ofMillis(-3)));
    assertEquals(Code.INVALID_ARGUMENT, refused.code());
    assertTrue(refused.getMessage().contains("a time limit of PT-0.003S is negative"), refused.getMessage());
    refused = failure(() -> Wait.atMost(-7));
    assertEquals(Code.INVALID_ARGUMENT, refused.code());
    assertTrue(refused.getMessage().contains("a time limit of -7 ns is negative"), refused.getMessage());
    assertThrows(NullPointerException.class, () -> Wait.atMost(null));
  }

  @Test
  void aTimeLimitLongerThanCanBeCountedIsForever() {
    assertSame(Wait.FOREVER, Wait.atMost(Duration.ofSeconds(Long.MAX_VALUE)));
    assertSame(Wait.FOREVER, Wait.atMost(Long.MAX_VALUE));
    assertEquals("forever", Wait.FOREVER.toString());
    assertEquals("none", Wait.NONE.toString());
    assertEquals("at most PT0.005S", SHORT.toString());
  }

  @Test
  void eachWayToReceiveAnswersByItsWait() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 1)) {
      Worker worker = cluster.worker(0);
      QueryId query = cluster.session(0).beginQuery();
      try (Shuffle shuffle = worker.openShuffle(new ShuffleSpec(query, 1, 8))) {
        ShuffleReceiver receiver = shuffle.receiver();
        Batch batch = receiver.newBatch();
        ObjectReceiver<Long> objects = receiver.objects(RowCodecs.LONG);
        assertEquals(Outcome.WOULD_WAIT, receiver.receive(batch, Wait.NONE));
        assertEquals(Outcome.WOULD_WAIT, receiver.receiveFrom(0, batch, Wait.NONE));
        assertEquals(Outcome.WOULD_WAIT, objects.next(Wait.NONE));
        assertEquals(Outcome.WOULD_WAIT, objects.drain(row -> {}, Wait.NONE));
        assertEquals(Outcome.WOULD_WAIT, worker.waitUntil(() -> false, Wait.NONE));
        for (Wait<InterruptedException> limit : List.of(NOT_AT_ALL, SHORT)) {
          assertEquals(Outcome.DEADLINE, receiver.receive(batch, limit));
          assertEquals(Outcome.DEADLINE, receiver.receiveFrom(0, batch, limit));
          assertEquals(Outcome.DEADLINE, objects.next(limit));
          assertEquals(Outcome.DEADLINE, objects.drain(row -> {}, limit));
          assertEquals(Outcome.DEADLINE, worker.waitUntil(() -> false, limit));
        }
        assertEquals(Outcome.DONE, shuffle.sender().finish());
        assertEquals(Outcome.END_OF_STREAM, receiver.receive(batch));
      }
      worker.endQuery(query);
    }
  }

  /** Towards a receiver whose ring is full, as it receives nothing; nothing spills, as nothing is held. */
  @Test
  void eachWayToSendAnswersByItsWait() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 2)) {
      Worker worker = cluster.worker(0);
      QueryId query = cluster.session(0).beginQuery();
      Shuffle other = cluster.worker(1).openShuffle(new ShuffleSpec(query, 1, 8));
      Shuffle shuffle = worker.openShuffle(new ShuffleSpec(query, 1, 8));
      ShuffleSender sender = shuffle.sender();
      LongSender longs = sender.longs();
      ObjectSender<Long> objects = sender.objects(RowCodecs.LONG);
      RowWriter rows = sender.rows();
      byte[] row = new byte[8];
      int[] to = {1};
      long[] many = new long[100]; // all of one key
      List<Long> boxed = Collections.nCopies(100, 7L);
      Partition partition = Partition.FINALIZER;
      for (long key = 0; partition.receiverOf(many[0], 2) != 1; key++) {
        Arrays.fill(many, key);
      }
      while (longs.send(1, 0, Wait.NONE) == Outcome.DONE) {}

      assertEquals(Outcome.WOULD_WAIT, longs.send(1, 0, Wait.NONE));
      assertEquals(Outcome.WOULD_WAIT, objects.send(1, 0L, Wait.NONE));
      assertEquals(Outcome.WOULD_WAIT, objects.multicast(to, 0L, Wait.NONE));
      assertEquals(Outcome.WOULD_WAIT, objects.broadcast(0L, Wait.NONE));
      assertEquals(Outcome.WOULD_WAIT, rows.claim(1, 8, Wait.NONE));
      assertEquals(Outcome.WOULD_WAIT, sender.send(1, row, 0, 8, Wait.NONE));
      assertEquals(Outcome.WOULD_WAIT, sender.multicast(to, row, 0, 8, Wait.NONE));
      assertEquals(Outcome.WOULD_WAIT, sender.broadcast(row, 0, 8, Wait.NONE));
      assertEquals(0, longs.sendAll(many, 0, many.length, partition, Wait.NONE));
      assertEquals(Outcome.WOULD_WAIT, longs.stoppedBy());
      assertEquals(0, objects.sendAll(boxed, 0, 100, each -> 1, Wait.NONE));
      assertEquals(Outcome.WOULD_WAIT, objects.stoppedBy());
      for (Wait<InterruptedException> limit : List.of(NOT_AT_ALL, SHORT)) {
        assertEquals(Outcome.DEADLINE, longs.send(1, 0, limit));
        assertEquals(Outcome.DEADLINE, objects.send(1, 0L, limit));
        assertEquals(Outcome.DEADLINE, objects.multicast(to, 0L, limit));
        assertEquals(Outcome.DEADLINE, objects.broadcast(0L, limit));
        assertEquals(Outcome.DEADLINE, rows.claim(1, 8, limit));
        assertEquals(Outcome.DEADLINE, sender.send(1, row, 0, 8, limit));
        assertEquals(Outcome.DEADLINE, sender.multicast(to, row, 0, 8, limit));
        assertEquals(Outcome.DEADLINE, sender.broadcast(row, 0, 8, limit));
        assertEquals(0, longs.sendAll(many, 0, many.length, partition, limit));
        assertEquals(Outcome.DEADLINE, longs.stoppedBy());
        assertEquals(0, objects.sendAll(boxed, 0, 100, each -> 1, limit));
        assertEquals(Outcome.DEADLINE, objects.stoppedBy());
      }
      shuffle.close();
      other.close();
    }
  }

  @Test
  void theEndOfAQueryAnswersByItsWait() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 2)) {
      QueryId query = cluster.session(0).beginQuery();
      for (int each : new int[] {0, 1}) {
        try (Shuffle shuffle = cluster.worker(each).openShuffle(new ShuffleSpec(query, 1, 8))) {
          shuffle.receiver().stop();
          assertEquals(Outcome.DONE, shuffle.sender().finish());
        }
      }
      Worker worker = cluster.worker(0);
      Worker other = cluster.worker(1);
      assertEquals(Outcome.WOULD_WAIT, worker.endQuery(query, Wait.NONE));
      assertEquals(Outcome.DEADLINE, worker.endQuery(query, NOT_AT_ALL));
      assertEquals(Outcome.DEADLINE, worker.endQuery(query, SHORT));
      other.releaseOwnership();
      Thread ending =
          new Thread(
              () -> {
                try {
                  other.endQuery(query);
                } catch (InterruptedException impossible) {
                  throw new AssertionError(impossible);
                }
              });
      ending.start();
      assertEquals(Outcome.DONE, worker.endQuery(query, Wait.FOREVER));
      ending.join();
    }
  }

  @Test
  void aNodeThatIsMissingIsAwaitedAsLongAsItsWaitSays() throws Exception {
    try (Cluster cluster = new Cluster("auto", 2, 1)) {
      Session session = cluster.session(0);
      assertTrue(session.awaitNode(1, Wait.NONE));
      session.awaitNode(1); // is there
      cluster.session(1).close();
      while (session.hasNode(1)) {
        Thread.onSpinWait(); // until it is told; the test's time limit ends it
      }
      assertFalse(session.awaitNode(1, Wait.NONE));
      assertFalse(session.awaitNode(1, NOT_AT_ALL));
      assertFalse(session.awaitNode(1, SHORT));
    }
  }
}
