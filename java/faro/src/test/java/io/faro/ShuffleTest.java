package io.faro;

import static io.faro.Checks.check;
import static io.faro.Checks.codeOf;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(20)
class ShuffleTest {
  /** Polls until the end of the stream. */
  private interface BatchReader {
    void read(Batch batch);
  }

  private static void drain(Shuffle shuffle, BatchReader reader) throws InterruptedException {
    Batch batch = shuffle.receiver().newBatch();
    while (shuffle.receiver().receive(batch) == Outcome.DONE) {
      reader.read(batch);
    }
  }

  // --- all to all

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void carriesEveryLongOnceAndInOrder(String transport) throws Exception {
    int rows = 200_000;
    try (Cluster cluster = new Cluster(transport, 2, 2)) {
      QueryId query = cluster.session(0).beginQuery();
      cluster.shuffle(new ShuffleSpec(query, 1, 8), (worker, shuffle) -> {
        LongSender sender = shuffle.sender().longs();
        int peers = shuffle.sender().receiverCount();
        // Sends everything before it polls anything.
        for (int i = 0; i < rows; i++) {
          check(sender.send(i % peers, (long) worker.number() << 32 | i));
        }
        check(shuffle.sender().finish());
        int[] next = new int[peers];
        Arrays.fill(next, worker.number());
        drain(
            shuffle,
            batch -> {
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
      Worker worker = cluster.worker(0);
      Shuffle shuffle = worker.openShuffle(new ShuffleSpec(cluster.session(0).beginQuery(), 1, 8));
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
        assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> sender.put(receiver, 1)));
      }
      Thread other =
          new Thread(
              () ->
                  assertEquals(
                      Code.WRONG_STATE, assertThrows(FaroException.class, () -> sender.put(0, 1)).code()));
      AtomicReference<Throwable> problem = new AtomicReference<>();
      other.setUncaughtExceptionHandler((thread, thrown) -> problem.set(thrown));
      other.start();
      other.join();
      assertNull(problem.get());
      check(shuffle.sender().finish(Wait.NONE));
      int[] next = {0};
      drain(
          shuffle,
          batch -> {
            for (int i = 0; i < batch.rowCount(); i++) {
              assertEquals(next[0]++, batch.getLong(i * 8));
            }
          });
      assertEquals(rows, next[0]);
      shuffle.close();
      assertEquals(Code.CLOSED, codeOf(() -> sender.put(0, 1)));
      worker.endQuery(shuffle.spec().query());
    }
  }

  @Test
  void aNumberIsReadOnlyWhereAllOfItLiesInTheFrame() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 1)) {
      Worker worker = cluster.worker(0);
      QueryId query = cluster.session(0).beginQuery();
      try (Shuffle shuffle = worker.openShuffle(new ShuffleSpec(query, 1, 8))) {
        check(shuffle.sender().longs().send(0, 0x0102030405060708L, Wait.NONE));
        check(shuffle.sender().finish(Wait.NONE));
        Batch batch = shuffle.receiver().newBatch();
        check(shuffle.receiver().receive(batch, Wait.NONE));
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
        assertEquals(Code.WRONG_STATE, codeOf(() -> batch.getLong(0)));
        assertEquals(Outcome.END_OF_STREAM, shuffle.receiver().receive(batch, Wait.NONE));
      }
      worker.endQuery(query);
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
      QueryId query = cluster.session(0).beginQuery();
      cluster.shuffle(new ShuffleSpec(query, 1, 8), (worker, shuffle) -> {
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
        drain(
            shuffle,
            batch -> {
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
      QueryId query = cluster.session(0).beginQuery();
      cluster.shuffle(new ShuffleSpec(query, 1, 0), (worker, shuffle) -> {
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
        drain(
            shuffle,
            batch -> {
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
        Shuffle shuffle = cluster.worker(0).openShuffle(new ShuffleSpec(cluster.session(0).beginQuery(), 1, 27))) {
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
      Batch batch = shuffle.receiver().newBatch();
      check(shuffle.receiver().receive(batch, Wait.NONE));
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
        Shuffle shuffle = cluster.worker(0).openShuffle(new ShuffleSpec(cluster.session(0).beginQuery(), 1, 8))) {
      LongSender sender = shuffle.sender().longs();
      Batch held = shuffle.receiver().newBatch();
      check(sender.send(0, 0, Wait.NONE));
      shuffle.sender().flush();
      check(shuffle.receiver().receive(held, Wait.NONE));
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
    try (Cluster cluster = new Cluster("auto", 1, 1)) {
      Worker worker = cluster.worker(0);
      try (Shuffle shuffle = worker.openShuffle(new ShuffleSpec(cluster.session(0).beginQuery(), 1, 8))) {
        Batch batch = shuffle.receiver().newBatch();
        assertEquals(Outcome.DEADLINE, shuffle.receiver().receive(batch, Wait.atMost(Duration.ofMillis(20))));
        assertEquals(Outcome.WOULD_WAIT, shuffle.receiver().receive(batch, Wait.NONE));
        assertEquals(Outcome.DEADLINE, worker.waitUntil(() -> false, Wait.atMost(Duration.ofMillis(20))));
      }
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
        assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> shuffle.receiver().receive(batch, Wait.atMost(negative))));
        assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> worker.waitUntil(() -> true, Wait.atMost(negative))));
        assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> session.awaitNode(0, Wait.atMost(negative))));
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
        Shuffle shuffle =
            cluster.worker(0).openShuffle(new ShuffleSpec(cluster.session(0).beginQuery(), 1, 8))) {
      byte[] row = new byte[8];
      for (int[] receivers : new int[][] {{}, {-1}, {0, 1}}) {
        assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> shuffle.sender().multicast(receivers, row, 0, 8, Wait.NONE)));
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
      FaroException ended =
          assertThrows(
              FaroException.class,
              () ->
                  cluster
                      .worker(0)
                      .waitUntil(
                          () -> {
                            if (calls.incrementAndGet() == 5) { // it waits by then
                              assertEquals(Code.DEADLINE_EXCEEDED, codeOf(session::close)); // this call is inside
                            }
                            return false;
                          }));
      assertEquals(Code.SESSION_CLOSED, ended.code());
    }
  }

  @Test
  void aWaitWithinTheConditionOfAnotherIsRefusedAsWhatItIs() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 1)) {
      Worker worker = cluster.worker(0);
      QueryId query = cluster.session(0).beginQuery();
      try (Shuffle shuffle = worker.openShuffle(new ShuffleSpec(query, 1, 0));
          Batch batch = shuffle.receiver().newBatch()) {
        List<FaroException> refused = new ArrayList<>();
        worker.waitUntil(
            () -> {
              refused.add(assertThrows(FaroException.class, () -> worker.waitUntil(() -> false)));
              refused.add(assertThrows(FaroException.class, () -> shuffle.receiver().receive(batch)));
              return true;
            });
        for (FaroException each : refused) {
          assertEquals(Code.WRONG_STATE, each.code());
          assertTrue(each.getMessage().contains("nothing may wait"), each.getMessage());
        }
        shuffle.receiver().stop();
      }
    }
  }

  @Test
  void anInterruptEndsAWaitAtOnceAndTheNextOneWaitsAgain() throws Exception {
    try (Cluster cluster = new Cluster(1, 1, c -> c.set(Setting.WAIT_SLEEP_MS, 10_000))) {
      Worker worker = cluster.worker(0);
      Shuffle shuffle = worker.openShuffle(new ShuffleSpec(cluster.session(0).beginQuery(), 1, 8));
      worker.releaseOwnership();
      for (int round = 0; round < 3; round++) {
        AtomicReference<Object> ended = new AtomicReference<>();
        Thread waiting =
            new Thread(
                () -> {
                  try {
                    ended.set(shuffle.receiver().receive(shuffle.receiver().newBatch()));
                  } catch (InterruptedException interrupted) {
                    ended.set(Thread.currentThread().isInterrupted() ? "still set" : "interrupted");
                  }
                });
        waiting.start();
        waiting.interrupt(); // before, while or after it begins to wait
        waiting.join();
        assertEquals("interrupted", ended.get());
      }
      assertEquals(Outcome.DEADLINE, shuffle.receiver().receive(shuffle.receiver().newBatch(), Wait.atMost(Duration.ofMillis(5))));
      shuffle.close();
    }
  }

  @Test
  void wakeMakesAConditionBeSeen() throws Exception {
    try (Cluster cluster = new Cluster(1, 1, c -> c.set(Setting.WAIT_SLEEP_MS, 10_000))) {
      CountDownLatch waits = new CountDownLatch(1);
      AtomicReference<String> told = new AtomicReference<>();
      Thread teller =
          new Thread(
              () -> {
                try {
                  waits.await();
                  told.set("now");
                  cluster.worker(0).wake();
                } catch (InterruptedException unexpected) {
                  throw new AssertionError(unexpected);
                }
              });
      teller.start();
      check(
          cluster
              .worker(0)
              .waitUntil(
                  () -> {
                    waits.countDown();
                    return told.get() != null;
                  }));
      teller.join();
    }
  }

  @Test
  void whatAConditionThrowsIsThrown() {
    try (Cluster cluster = new Cluster("auto", 1, 1)) {
      Worker worker = cluster.worker(0);
      assertThrows(
          IllegalStateException.class,
          () ->
              worker.waitUntil(
                  () -> {
                    throw new IllegalStateException("mine");
                  }));
    }
  }

  @Test
  void closingTheSessionEndsAWait() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 1)) {
      Worker worker = cluster.worker(0);
      Shuffle shuffle = worker.openShuffle(new ShuffleSpec(cluster.session(0).beginQuery(), 1, 8));
      Thread closer = new Thread(cluster.session(0)::close);
      closer.start();
      assertEquals(Code.SESSION_CLOSED, codeOf(() -> shuffle.receiver().receive(shuffle.receiver().newBatch())));
      shuffle.close();
      closer.join();
    }
  }

  // --- how a query ends early

  @Test
  void cancelReachesEveryParticipant() throws Exception {
    try (Cluster cluster = new Cluster("auto", 2, 1)) {
      QueryId query = cluster.session(0).beginQuery();
      CyclicBarrier opened = new CyclicBarrier(2);
      cluster.onEachWorker(
          worker -> {
            Shuffle shuffle = worker.openShuffle(new ShuffleSpec(query, 1, 8));
            opened.await();
            if (worker.number() == 0) {
              shuffle.cancel("no longer needed");
            }
            FaroException cause =
                assertThrows(FaroException.class, () -> shuffle.receiver().receive(shuffle.receiver().newBatch()));
            assertEquals(Code.QUERY_CANCELLED, cause.code());
            assertEquals(Category.QUERY, cause.category());
            assertTrue(cause.getMessage().contains("no longer needed"), cause.getMessage());
            assertEquals(Code.QUERY_CANCELLED, codeOf(shuffle.sender()::flush)); // asked again, too
            assertEquals(Code.QUERY_CANCELLED, codeOf(shuffle::checkQuery));
            shuffle.close();
            assertEquals(Code.QUERY_CANCELLED, codeOf(() -> worker.endQuery(query)));
          });
    }
  }

  @Test
  void aReceiverThatStopsIsSentNothingMore() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 1)) {
      Worker worker = cluster.worker(0);
      try (Shuffle shuffle = worker.openShuffle(new ShuffleSpec(cluster.session(0).beginQuery(), 1, 8))) {
        LongSender sender = shuffle.sender().longs();
        shuffle.receiver().stop();
        assertEquals(Outcome.END_OF_STREAM, shuffle.receiver().receive(shuffle.receiver().newBatch(), Wait.NONE));
        check(
            worker.waitUntil(
                () -> sender.send(0, 1, Wait.NONE) == Outcome.STOPPED, Wait.atMost(Duration.ofSeconds(20))));
        check(shuffle.sender().finish(Wait.NONE));
      }
    }
  }

  // --- misuse: exceptions, never a crash

  @Test
  void anotherThreadIsRefusedUntilOwnershipIsReleased() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 1)) {
      Worker worker = cluster.worker(0);
      Shuffle shuffle = worker.openShuffle(new ShuffleSpec(cluster.session(0).beginQuery(), 1, 8));
      LongSender sender = shuffle.sender().longs();
      AtomicReference<Code> code = new AtomicReference<>();
      Runnable intrude =
          () -> {
            try {
              sender.send(0, 1, Wait.NONE);
              code.set(null);
            } catch (FaroException refused) {
              code.set(refused.code());
            }
          };
      Thread before = new Thread(intrude);
      before.start();
      before.join();
      assertEquals(Code.WRONG_STATE, code.get());
      worker.releaseOwnership();
      Thread after = new Thread(intrude);
      after.start();
      after.join();
      assertEquals(null, code.get());
      shuffle.close(); // its owner has ended
    }
  }

  @Test
  void aFrameThatWasReleasedCannotBeRead() {
    try (Cluster cluster = new Cluster("auto", 1, 1)) {
      Worker worker = cluster.worker(0);
      Shuffle shuffle = worker.openShuffle(new ShuffleSpec(cluster.session(0).beginQuery(), 1, 8));
      Batch batch = shuffle.receiver().newBatch();
      assertEquals(Code.WRONG_STATE, codeOf(() -> batch.getLong(0)));
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
      assertEquals(Code.WRONG_STATE, codeOf(() -> batch.getLong(0)));
      shuffle.close();
      shuffle.close();
      assertEquals(Code.CLOSED, codeOf(() -> batch.getLong(0)));
      assertEquals(Code.CLOSED, codeOf(() -> shuffle.receiver().receive(batch, Wait.NONE)));
    }
  }

  @Test
  void aClaimEndsWithTheNextCall() {
    try (Cluster cluster = new Cluster("auto", 1, 1);
        Shuffle shuffle = cluster.worker(0).openShuffle(new ShuffleSpec(cluster.session(0).beginQuery(), 1, 0))) {
      RowWriter writer = shuffle.sender().rows();
      assertEquals(Code.WRONG_STATE, codeOf(() -> writer.putInt(0, 1)));
      check(writer.claim(0, 8, Wait.NONE));
      assertThrows(IndexOutOfBoundsException.class, () -> writer.putLong(1, 1));
      assertThrows(IndexOutOfBoundsException.class, () -> writer.commit(9));
      shuffle.sender().flush(); // the batch may be closed now
      assertEquals(Code.WRONG_STATE, codeOf(() -> writer.putInt(0, 1)));
      check(writer.claim(0, 8, Wait.NONE));
      writer.abort();
      assertEquals(Code.WRONG_STATE, codeOf(() -> writer.commit(8)));
      check(shuffle.sender().finish(Wait.NONE));
      assertEquals(Outcome.END_OF_STREAM, shuffle.receiver().receive(shuffle.receiver().newBatch(), Wait.NONE));
    }
  }

  @Test
  void wrongReceiversWidthsAndRolesAreRefused() {
    try (Cluster cluster = new Cluster("auto", 1, 2)) {
      Worker worker = cluster.worker(0);
      QueryId query = cluster.session(0).beginQuery();
      ShuffleSpec toOne = new ShuffleSpec(query, 1, 8, new int[] {0}, new int[] {1});
      Shuffle shuffle = worker.openShuffle(toOne);
      assertEquals(1, shuffle.sender().receiverCount());
      LongSender sender = shuffle.sender().longs();
      for (int receiver : new int[] {-1, 1, Integer.MAX_VALUE, Integer.MIN_VALUE}) {
        assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> sender.send(receiver, 1, Wait.NONE)));
        assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> shuffle.sender().send(receiver, new byte[8], 0, 8, Wait.NONE)));
      }
      assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> shuffle.sender().send(0, new byte[8], 0, 7, Wait.NONE)));
      assertThrows(IndexOutOfBoundsException.class, () -> shuffle.sender().send(0, new byte[8], 1, 8, Wait.NONE));
      assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> shuffle.sender().rows().claim(0, 7, Wait.NONE)));
      assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> worker.openShuffle(toOne)));
      Worker receiver = cluster.worker(1);
      assertEquals(Code.WRONG_STATE, codeOf(() -> receiver.openShuffle(toOne).sender().longs()));
      assertFalse(shuffle.spec().query().toString().isEmpty());
    }
  }
}
