package io.faro;

import static io.faro.Checks.check;
import static io.faro.Checks.drain;
import static io.faro.Checks.drainLongs;
import static io.faro.Checks.failsBy;
import static io.faro.Checks.inThread;
import static io.faro.Checks.received;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(20)
class ShuffleTest {
  // --- all to all

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void carriesEveryLongOnceAndInOrder(String transport) throws Exception {
    int rows = 200_000;
    try (Cluster cluster = new Cluster(transport, 2, 2)) {
      cluster.shuffle(8, (worker, shuffle) -> {
        LongSender sender = shuffle.sender().longs();
        int peers = shuffle.sender().receiverCount();
        // Sends everything before it polls anything.
        for (int i = 0; i < rows; i++) {
          check(sender.send(i % peers, (long) worker.number() << 32 | i));
        }
        check(shuffle.sender().finish());
        int[] next = new int[peers];
        Arrays.fill(next, worker.number());
        drain(shuffle, batch -> {
          for (int i = 0; i < batch.rowCount(); i++) {
            long row = batch.getLong(i * 8);
            int from = batch.sender();
            assertEquals((long) from << 32 | next[from], row);
            next[from] += peers;
          }
        });
        for (int end : next) {
          assertTrue(end >= rows, "lost the end of a stream");
        }
      });
    }
  }

  @Test
  void aRowIsPutOnlyWhereItsReceiverHasAnOpenFrameWithRoom() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 1)) {
      Shuffle shuffle = cluster.openShuffle(8);
      LongSender sender = shuffle.sender().longs();
      assertFalse(sender.put(0, -1), "no batch is open yet");
      check(sender.send(0, 0, Wait.NONE));
      int rows = 1;
      while (sender.put(0, rows)) {
        rows++;
      }
      check(sender.send(0, rows, Wait.NONE)); // in the next batch
      rows++;
      for (int receiver : new int[] {-1, 1}) {
        failsBy(Code.INVALID_ARGUMENT, () -> sender.put(receiver, 1));
      }
      inThread(() -> failsBy(Code.WRONG_STATE, () -> sender.put(0, 1)));
      check(shuffle.sender().finish(Wait.NONE));
      int[] next = {0};
      drainLongs(shuffle, row -> assertEquals(next[0]++, row));
      assertEquals(rows, next[0]);
      shuffle.close();
      failsBy(Code.CLOSED, () -> sender.put(0, 1));
      cluster.worker(0).endQuery(shuffle.spec().query());
    }
  }

  @Test
  void aNumberIsReadOnlyWhereAllOfItLiesInTheFrame() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 1)) {
      cluster.shuffle(8, (worker, shuffle) -> {
        check(shuffle.sender().longs().send(0, 0x0102030405060708L, Wait.NONE));
        check(shuffle.sender().finish(Wait.NONE));
        Batch batch = received(shuffle);
        assertEquals(0x0102030405060708L, batch.getLong(0));
        assertEquals(0x01020304, batch.getInt(4));
        assertEquals(0x0102, batch.getShort(6));
        assertEquals(0x01, batch.getByte(7));
        for (int at : new int[] {-1, Integer.MIN_VALUE, 8, Integer.MAX_VALUE}) {
          assertThrows(IndexOutOfBoundsException.class, () -> batch.getByte(at));
        }
        assertThrows(IndexOutOfBoundsException.class, () -> batch.getShort(7));
        assertThrows(IndexOutOfBoundsException.class, () -> batch.getInt(5));
        assertThrows(IndexOutOfBoundsException.class, () -> batch.getLong(1));
        assertThrows(IndexOutOfBoundsException.class, () -> batch.getDouble(1));
        assertThrows(IndexOutOfBoundsException.class, () -> batch.getBytes(8, new byte[4], 0, 1));
        assertThrows(IndexOutOfBoundsException.class, () -> batch.getBytes(0, new byte[4], 0, -1));
        batch.release();
        failsBy(Code.WRONG_STATE, () -> batch.getLong(0));
        assertEquals(Outcome.END_OF_STREAM, shuffle.receiver().receive(batch, Wait.NONE));
      });
    }
  }

  @ParameterizedTest
  @EnumSource(Partition.class)
  void sendsArraysWhereNativeNodesExpectThem(Partition partition) throws Exception {
    long[] keys = new Random(7).longs(100_000).toArray();
    keys[0] = 0;
    keys[1] = -1;
    keys[2] = Long.MIN_VALUE;
    keys[3] = Long.MAX_VALUE;
    AtomicLong received = new AtomicLong();
    AtomicLong sum = new AtomicLong();
    try (Cluster cluster = new Cluster("shm", 3, 1)) {
      cluster.shuffle(8, (worker, shuffle) -> {
        LongSender sender = shuffle.sender().longs();
        int[] taken = {0};
        while (taken[0] < keys.length) {
          taken[0] += sender.sendAll(keys, taken[0], keys.length, partition, Wait.NONE);
          if (taken[0] < keys.length) {
            assertEquals(Outcome.WOULD_WAIT, sender.stoppedBy());
            worker.waitUntil(
                () -> {
                  int more = sender.sendAll(keys, taken[0], keys.length, partition, Wait.NONE);
                  taken[0] += more;
                  return more > 0;
                });
          }
        }
        check(shuffle.sender().finish());
        long[] rows = new long[8192];
        drain(shuffle, batch -> {
          batch.getLongs(0, rows, 0, batch.rowCount());
          for (int i = 0; i < batch.rowCount(); i++) {
            assertEquals(worker.number(), partition.receiverOf(rows[i], 3));
            sum.addAndGet(rows[i]);
          }
          received.addAndGet(batch.rowCount());
        });
      });
    }
    assertEquals(3L * keys.length, received.get());
    assertEquals(3 * Arrays.stream(keys).sum(), sum.get());
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void carriesRowsOfAnyLength(String transport) throws Exception {
    // Empty rows, rows of a batch and around it, rows above a ring.
    int[] lengths = {0, 1, 7, 100, 4000, 8170, 8171, 8172, 8173, 8192, 40_000, 1_000_000};
    try (Cluster cluster = new Cluster(transport, 2, 1)) {
      cluster.shuffle(0, (worker, shuffle) -> {
        RowWriter writer = shuffle.sender().rows();
        for (int length : lengths) {
          byte[] row = row(length);
          for (int to = 0; to < 2; to++) {
            check(writer.claim(to, length + 16)); // more than is used
            writer.putBytes(0, row, 0, length);
            writer.commit(length);
          }
          check(shuffle.sender().broadcast(row, 0, length));
        }
        check(shuffle.sender().finish());
        int[] seen = new int[2];
        drain(shuffle, batch -> {
          while (batch.nextRow()) {
            int number = seen[batch.sender()]++;
            byte[] row = new byte[batch.rowLength()];
            batch.getBytes(batch.rowOffset(), row, 0, row.length);
            assertArrayEquals(row(lengths[number / 2]), row);
          }
        });
        assertArrayEquals(new int[] {2 * lengths.length, 2 * lengths.length}, seen);
      });
    }
  }

  private static byte[] row(int length) {
    byte[] row = new byte[length];
    new Random(length).nextBytes(row);
    return row;
  }

  @Test
  void writesAndReadsEveryWidthInPlace() {
    try (Cluster cluster = new Cluster("auto", 1, 1);
        Shuffle shuffle = cluster.openShuffle(27)) {
      RowWriter writer = shuffle.sender().rows();
      check(writer.claim(0, 27, Wait.NONE));
      writer.putLong(0, Long.MIN_VALUE + 5);
      writer.putInt(8, -7);
      writer.putShort(12, (short) -9);
      writer.putByte(14, (byte) -11);
      writer.putDouble(15, Math.PI);
      writer.putBytes(23, new byte[] {1, 2, 3, 4}, 0, 4);
      writer.commit(27);
      check(shuffle.sender().finish(Wait.NONE));
      Batch batch = received(shuffle);
      assertEquals(1, batch.rowCount());
      assertEquals(Long.MIN_VALUE + 5, batch.getLong(0));
      assertEquals(-7, batch.getInt(8));
      assertEquals(-9, batch.getShort(12));
      assertEquals(-11, batch.getByte(14));
      assertEquals(Math.PI, batch.getDouble(15));
      assertEquals(0x04030201, batch.getInt(23)); // little-endian
      assertEquals(Outcome.END_OF_STREAM, shuffle.receiver().receive(batch, Wait.NONE));
    }
  }

  @Test
  void rowsGoToOverflowWhileFramesAreHeld() {
    int rows = 100_000;
    try (Cluster cluster = new Cluster("shm", 1, 1);
        Shuffle shuffle = cluster.openShuffle(8)) {
      LongSender sender = shuffle.sender().longs();
      check(sender.send(0, 0, Wait.NONE));
      shuffle.sender().flush();
      Batch held = received(shuffle);
      for (int i = 1; i < rows; i++) {
        check(sender.send(0, i, Wait.NONE));
      }
      assertEquals(0, held.getLong(0));
      held.release();
      Batch batch = shuffle.receiver().newBatch();
      int next = 1;
      for (Outcome outcome; (outcome = shuffle.receiver().receive(batch, Wait.NONE)) != Outcome.END_OF_STREAM; ) {
        shuffle.sender().finish(Wait.NONE);
        if (outcome == Outcome.DONE) {
          for (int i = 0; i < batch.rowCount(); i++) {
            assertEquals(next++, batch.getLong(i * 8));
          }
        }
      }
      assertEquals(rows, next);
    }
  }

  // --- waiting

  @Test
  void takeEndsAtItsTimeLimit() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 1);
        Shuffle shuffle = cluster.openShuffle(8)) {
      Worker worker = cluster.worker(0);
      Batch batch = shuffle.receiver().newBatch();
      assertEquals(Outcome.DEADLINE, shuffle.receiver().receive(batch, Wait.atMost(Duration.ofMillis(20))));
      assertEquals(Outcome.WOULD_WAIT, shuffle.receiver().receive(batch, Wait.NONE));
      assertEquals(Outcome.DEADLINE, worker.waitUntil(() -> false, Wait.atMost(Duration.ofMillis(20))));
    }
  }

  @Test
  void aWaitOfNoTimeTriesOnceAndANegativeOneIsRefused() throws Exception {
    try (Cluster cluster = new Cluster("shm", 1, 1)) {
      Worker worker = cluster.worker(0);
      Session session = cluster.session(0);
      Duration negative = Duration.ofNanos(-5);
      Duration longerThanNanosCount = Duration.ofSeconds(Long.MAX_VALUE);
      try (Shuffle shuffle = worker.openShuffle(new ShuffleSpec(session.beginQuery(), 1, 8));
          Batch batch = shuffle.receiver().newBatch()) {
        assertEquals(Outcome.DEADLINE, shuffle.receiver().receive(batch, Wait.atMost(Duration.ZERO)));
        assertEquals(Outcome.DEADLINE, worker.waitUntil(() -> false, Wait.atMost(Duration.ZERO)));
        assertEquals(Outcome.DONE, worker.waitUntil(() -> true, Wait.atMost(Duration.ZERO)));
        assertEquals(Outcome.DONE, worker.waitUntil(() -> true, Wait.atMost(longerThanNanosCount)));
        failsBy(Code.INVALID_ARGUMENT, () -> shuffle.receiver().receive(batch, Wait.atMost(negative)));
        failsBy(Code.INVALID_ARGUMENT, () -> worker.waitUntil(() -> true, Wait.atMost(negative)));
        failsBy(Code.INVALID_ARGUMENT, () -> session.awaitNode(0, Wait.atMost(negative)));
        shuffle.sender().longs().send(0, 7);
        shuffle.sender().flush();
        assertEquals(Outcome.DONE, shuffle.receiver().receive(batch, Wait.atMost(Duration.ZERO)));
        shuffle.sender().finish();
      }
    }
  }

  @Test
  void aMulticastIsForReceiversThatThereAre() {
    try (Cluster cluster = new Cluster("shm", 1, 1);
        Shuffle shuffle = cluster.openShuffle(8)) {
      byte[] row = new byte[8];
      for (int[] receivers : new int[][] {{}, {-1}, {0, 1}}) {
        failsBy(Code.INVALID_ARGUMENT, () -> shuffle.sender().multicast(receivers, row, 0, 8, Wait.NONE));
      }
      assertEquals(Outcome.DONE, shuffle.sender().multicast(new int[] {0}, row, 0, 8, Wait.NONE));
      shuffle.receiver().stop();
      shuffle.sender().finish(Wait.NONE);
    }
  }

  @Test
  void aConditionThatClosesTheSessionEndsItsWait() {
    try (Cluster cluster = new Cluster(1, 1, config -> config.set(Setting.CLOSE_TIMEOUT_MS, 20))) {
      Session session = cluster.session(0);
      AtomicLong calls = new AtomicLong();
      BooleanSupplier closing = () -> {
        if (calls.incrementAndGet() == 5) { // it waits by then
          failsBy(Code.DEADLINE_EXCEEDED, session::close); // this call is inside
        }
        return false;
      };
      failsBy(Code.SESSION_CLOSED, () -> cluster.worker(0).waitUntil(closing));
    }
  }

  @Test
  void aWaitWithinTheConditionOfAnotherIsRefusedAsWhatItIs() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 1);
        Shuffle shuffle = cluster.openShuffle(0);
        Batch batch = shuffle.receiver().newBatch()) {
      Worker worker = cluster.worker(0);
      check(worker.waitUntil(() -> {
        failsBy(Code.WRONG_STATE, () -> worker.waitUntil(() -> false), "nothing may wait");
        failsBy(Code.WRONG_STATE, () -> shuffle.receiver().receive(batch), "nothing may wait");
        return true;
      }));
      shuffle.receiver().stop();
    }
  }

  @Test
  void anInterruptEndsAWaitAtOnceAndTheNextOneWaitsAgain() throws Exception {
    try (Cluster cluster = new Cluster(1, 1, c -> c.set(Setting.WAIT_SLEEP_MS, 10_000))) {
      Worker worker = cluster.worker(0);
      Shuffle shuffle = cluster.openShuffle(8);
      worker.releaseOwnership();
      for (int round = 0; round < 3; round++) {
        FutureTask<Boolean> ended = new FutureTask<>(() -> {
          Batch batch = shuffle.receiver().newBatch();
          assertThrows(InterruptedException.class, () -> shuffle.receiver().receive(batch));
          return Thread.currentThread().isInterrupted();
        });
        Thread waiting = new Thread(ended);
        waiting.start();
        waiting.interrupt(); // before, while or after it begins to wait
        waiting.join();
        assertFalse(ended.get(), "still set");
      }
      assertEquals(Outcome.DEADLINE, shuffle.receiver().receive(shuffle.receiver().newBatch(), Wait.atMost(Duration.ofMillis(5))));
      shuffle.close();
    }
  }

  @Test
  void wakeMakesAConditionBeSeen() throws Exception {
    try (Cluster cluster = new Cluster(1, 1, c -> c.set(Setting.WAIT_SLEEP_MS, 10_000))) {
      CountDownLatch waits = new CountDownLatch(1);
      AtomicBoolean told = new AtomicBoolean();
      FutureTask<Void> telling = new FutureTask<>(() -> {
        waits.await();
        told.set(true);
        cluster.worker(0).wake();
        return null;
      });
      new Thread(telling).start();
      check(cluster.worker(0).waitUntil(() -> {
        waits.countDown();
        return told.get();
      }));
      telling.get();
    }
  }

  @Test
  void whatAConditionThrowsIsThrown() {
    try (Cluster cluster = new Cluster("auto", 1, 1)) {
      BooleanSupplier condition = () -> {
        throw new IllegalStateException("mine");
      };
      assertThrows(IllegalStateException.class, () -> cluster.worker(0).waitUntil(condition));
    }
  }

  @Test
  void closingTheSessionEndsAWait() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 1)) {
      Shuffle shuffle = cluster.openShuffle(8);
      Thread closer = new Thread(cluster.session(0)::close);
      closer.start();
      failsBy(Code.SESSION_CLOSED, () -> shuffle.receiver().receive(shuffle.receiver().newBatch()));
      shuffle.close();
      closer.join();
    }
  }

  // --- how a query ends early

  @Test
  void cancelReachesEveryParticipant() throws Exception {
    try (Cluster cluster = new Cluster("auto", 2, 1)) {
      QueryId query = cluster.beginQuery();
      CyclicBarrier opened = new CyclicBarrier(2);
      cluster.onEachWorker(
          worker -> {
            Shuffle shuffle = worker.openShuffle(new ShuffleSpec(query, 1, 8));
            opened.await();
            if (worker.number() == 0) {
              shuffle.cancel("no longer needed");
            }
            Batch batch = shuffle.receiver().newBatch();
            FaroException cause =
                failsBy(Code.QUERY_CANCELLED, () -> shuffle.receiver().receive(batch), "no longer needed");
            assertEquals(Category.QUERY, cause.category());
            failsBy(Code.QUERY_CANCELLED, shuffle.sender()::flush); // asked again, too
            failsBy(Code.QUERY_CANCELLED, shuffle::checkQuery);
            shuffle.close();
            failsBy(Code.QUERY_CANCELLED, () -> worker.endQuery(query));
          });
    }
  }

  @Test
  void aReceiverThatStopsIsSentNothingMore() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 1);
        Shuffle shuffle = cluster.openShuffle(8)) {
      Worker worker = cluster.worker(0);
      LongSender sender = shuffle.sender().longs();
      shuffle.receiver().stop();
      assertEquals(Outcome.END_OF_STREAM, shuffle.receiver().receive(shuffle.receiver().newBatch(), Wait.NONE));
      check(
          worker.waitUntil(
              () -> sender.send(0, 1, Wait.NONE) == Outcome.STOPPED, Wait.atMost(Duration.ofSeconds(20))));
      check(shuffle.sender().finish(Wait.NONE));
    }
  }

  // --- misuse: exceptions, never a crash

  @Test
  void anotherThreadIsRefusedUntilOwnershipIsReleased() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 1)) {
      Shuffle shuffle = cluster.openShuffle(8);
      LongSender sender = shuffle.sender().longs();
      inThread(() -> failsBy(Code.WRONG_STATE, () -> sender.send(0, 1, Wait.NONE)));
      cluster.worker(0).releaseOwnership();
      assertEquals(Outcome.DONE, inThread(() -> sender.send(0, 1, Wait.NONE)));
      shuffle.close(); // its owner has ended
    }
  }

  @Test
  void aFrameThatWasReleasedCannotBeRead() {
    try (Cluster cluster = new Cluster("auto", 1, 1)) {
      Shuffle shuffle = cluster.openShuffle(8);
      Batch batch = shuffle.receiver().newBatch();
      failsBy(Code.WRONG_STATE, () -> batch.getLong(0));
      shuffle.sender().longs().send(0, 42, Wait.NONE);
      shuffle.sender().flush();
      check(shuffle.receiver().receive(batch, Wait.NONE));
      assertEquals(42, batch.getLong(0));
      assertThrows(IndexOutOfBoundsException.class, () -> batch.getLong(1));
      assertThrows(IndexOutOfBoundsException.class, () -> batch.getLong(-8));
      batch.detach();
      assertEquals(42, batch.getLong(0));
      batch.release();
      batch.release();
      failsBy(Code.WRONG_STATE, () -> batch.getLong(0));
      shuffle.close();
      shuffle.close();
      failsBy(Code.CLOSED, () -> batch.getLong(0));
      failsBy(Code.CLOSED, () -> shuffle.receiver().receive(batch, Wait.NONE));
    }
  }

  @Test
  void aClaimEndsWithTheNextCall() {
    try (Cluster cluster = new Cluster("auto", 1, 1);
        Shuffle shuffle = cluster.openShuffle(0)) {
      RowWriter writer = shuffle.sender().rows();
      failsBy(Code.WRONG_STATE, () -> writer.putInt(0, 1));
      check(writer.claim(0, 8, Wait.NONE));
      assertThrows(IndexOutOfBoundsException.class, () -> writer.putLong(1, 1));
      assertThrows(IndexOutOfBoundsException.class, () -> writer.commit(9));
      shuffle.sender().flush(); // the batch may be closed now
      failsBy(Code.WRONG_STATE, () -> writer.putInt(0, 1));
      check(writer.claim(0, 8, Wait.NONE));
      writer.abort();
      failsBy(Code.WRONG_STATE, () -> writer.commit(8));
      check(shuffle.sender().finish(Wait.NONE));
      assertEquals(Outcome.END_OF_STREAM, shuffle.receiver().receive(shuffle.receiver().newBatch(), Wait.NONE));
    }
  }

  @Test
  void wrongReceiversWidthsAndRolesAreRefused() {
    try (Cluster cluster = new Cluster("auto", 1, 2)) {
      Worker worker = cluster.worker(0);
      ShuffleSpec toOne = cluster.spec(8, 0, 1);
      Shuffle shuffle = worker.openShuffle(toOne);
      assertEquals(1, shuffle.sender().receiverCount());
      LongSender sender = shuffle.sender().longs();
      for (int receiver : new int[] {-1, 1, Integer.MAX_VALUE, Integer.MIN_VALUE}) {
        failsBy(Code.INVALID_ARGUMENT, () -> sender.send(receiver, 1, Wait.NONE));
        failsBy(Code.INVALID_ARGUMENT, () -> shuffle.sender().send(receiver, new byte[8], 0, 8, Wait.NONE));
      }
      failsBy(Code.INVALID_ARGUMENT, () -> shuffle.sender().send(0, new byte[8], 0, 7, Wait.NONE));
      assertThrows(IndexOutOfBoundsException.class, () -> shuffle.sender().send(0, new byte[8], 1, 8, Wait.NONE));
      failsBy(Code.INVALID_ARGUMENT, () -> shuffle.sender().rows().claim(0, 7, Wait.NONE));
      failsBy(Code.INVALID_ARGUMENT, () -> worker.openShuffle(toOne));
      Worker receiver = cluster.worker(1);
      failsBy(Code.WRONG_STATE, () -> receiver.openShuffle(toOne).sender().longs());
      assertFalse(shuffle.spec().query().toString().isEmpty());
    }
  }
}
