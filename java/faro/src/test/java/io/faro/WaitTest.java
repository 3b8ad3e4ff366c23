package io.faro;

import static io.faro.Checks.failsBy;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.IntBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** How long calls wait, and what they answer when that is over. */
@Timeout(20)
class WaitTest {
  private static final Wait<InterruptedException> NOT_AT_ALL = Wait.atMost(Duration.ZERO);
  private static final Wait<InterruptedException> SHORT = Wait.atMost(Duration.ofMillis(5));

  /** The answer of a call that has nothing to do. */
  private static Outcome answer(Wait<?> wait) {
    return wait == Wait.NONE ? Outcome.WOULD_WAIT : Outcome.DEADLINE;
  }

  @Test
  void aNegativeTimeLimitIsRefusedByItsValue() {
    Duration negative = Duration.ofMillis(-3);
    failsBy(Code.INVALID_ARGUMENT, () -> Wait.atMost(negative), "a time limit of PT-0.003S is negative");
    failsBy(Code.INVALID_ARGUMENT, () -> Wait.atMost(-7), "a time limit of -7 ns is negative");
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
      cluster.shuffle(8, (worker, shuffle) -> {
        ShuffleReceiver receiver = shuffle.receiver();
        Batch batch = receiver.newBatch();
        ObjectReceiver<Long> objects = receiver.objects(RowCodecs.LONG);
        for (Wait<?> wait : List.of(Wait.NONE, NOT_AT_ALL, SHORT)) {
          Outcome answer = answer(wait);
          assertEquals(answer, receiver.receive(batch, wait));
          assertEquals(answer, receiver.receiveFrom(0, batch, wait));
          assertEquals(answer, objects.next(wait));
          assertEquals(answer, objects.drain(row -> {}, wait));
          assertEquals(answer, worker.waitUntil(() -> false, wait));
        }
        assertEquals(Outcome.DONE, shuffle.sender().finish());
        assertEquals(Outcome.END_OF_STREAM, receiver.receive(batch));
      });
    }
  }

  /** Towards a receiver whose ring is full, as it receives nothing; nothing spills, as nothing is held. */
  @Test
  void eachWayToSendAnswersByItsWait() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 2)) {
      ShuffleSpec spec = cluster.spec(8);
      Shuffle other = cluster.worker(1).openShuffle(spec);
      Shuffle shuffle = cluster.worker(0).openShuffle(spec);
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
      MemorySender memory = sender.memory();
      ByteBuffer rowsInMemory = ByteBuffer.allocateDirect(8 * 100).order(ByteOrder.nativeOrder());
      rowsInMemory.asLongBuffer().put(many);
      IntBuffer ones = ByteBuffer.allocateDirect(4).order(ByteOrder.nativeOrder()).asIntBuffer().put(0, 1);
      while (longs.send(1, 0, Wait.NONE) == Outcome.DONE) {}

      for (Wait<?> wait : List.of(Wait.NONE, NOT_AT_ALL, SHORT)) {
        Outcome answer = answer(wait);
        assertEquals(answer, longs.send(1, 0, wait));
        assertEquals(answer, objects.send(1, 0L, wait));
        assertEquals(answer, objects.multicast(to, 0L, wait));
        assertEquals(answer, objects.broadcast(0L, wait));
        assertEquals(answer, rows.claim(1, 8, wait));
        assertEquals(answer, sender.send(1, row, 0, 8, wait));
        assertEquals(answer, sender.multicast(to, row, 0, 8, wait));
        assertEquals(answer, sender.broadcast(row, 0, 8, wait));
        assertEquals(0, longs.sendAll(many, 0, many.length, partition, wait));
        assertEquals(answer, longs.stoppedBy());
        assertEquals(0, memory.sendAll(rowsInMemory, 0, 100, 0, 8, partition, wait));
        assertEquals(answer, memory.stoppedBy());
        assertEquals(0, memory.sendRows(rowsInMemory, 0, 1, ones, wait));
        assertEquals(answer, memory.stoppedBy());
        assertEquals(0, objects.sendAll(boxed, 0, 100, each -> 1, wait));
        assertEquals(answer, objects.stoppedBy());
      }
      shuffle.close();
      other.close();
    }
  }

  @Test
  void theEndOfAQueryAnswersByItsWait() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 2)) {
      QueryId query = cluster.beginQuery();
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
      FutureTask<Outcome> ending = new FutureTask<>(() -> other.endQuery(query, Wait.FOREVER));
      new Thread(ending).start();
      assertEquals(Outcome.DONE, worker.endQuery(query, Wait.FOREVER));
      assertEquals(Outcome.DONE, ending.get());
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
