package io.faro;

import static io.faro.Checks.check;
import static io.faro.Checks.failsBy;
import static io.faro.Checks.failure;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Rows that go from worker to worker of one session as objects. */
@Timeout(30)
class ByReferenceTest {
  /** A row; immutable or not is up to its codec. */
  private static final class Row {
    long value;

    Row(long value) {
      this.value = value;
    }
  }

  private static final RowCodec<Row> MUTABLE =
      RowCodecs.fixed(Long.BYTES, (row, to) -> to.putLong(0, row.value), (from, at) -> new Row(from.getLong(at)));
  private static final RowCodec<Row> IMMUTABLE = RowCodecs.immutable(MUTABLE);

  private static Row next(ObjectReceiver<Row> receiver) {
    check(receiver.next(Wait.NONE));
    return receiver.get();
  }

  @Test
  void onlyImmutableRowsOfTheSameSessionAreHandedOver() throws Exception {
    try (Cluster cluster = new Cluster("auto", 2, 1)) {
      List<Row> rows = List.of(new Row(0), new Row(1));
      cluster.shuffle(0, (worker, shuffle) -> {
        for (Row row : rows) {
          check(shuffle.sender().objects(IMMUTABLE).send((int) row.value, row));
          check(shuffle.sender().objects(MUTABLE).send((int) row.value, row));
        }
        check(shuffle.sender().finish());
        ObjectReceiver<Row> receiver = shuffle.receiver().objects(IMMUTABLE);
        int same = 0;
        for (int i = 0; i < 4; i++) {
          check(receiver.next());
          Row row = receiver.get();
          assertEquals(worker.number(), row.value);
          if (row == rows.get(worker.number())) {
            assertEquals(worker.number(), receiver.sender());
            same++;
          }
        }
        assertEquals(1, same);
        assertEquals(Outcome.END_OF_STREAM, receiver.next());
      });
    }
  }

  @Test
  void oneRowObjectThatIsUsedForAllSendsLosesNothing() throws Exception {
    int rows = 50_000;
    try (Cluster cluster = new Cluster("auto", 1, 2)) {
      cluster.shuffle(0, (worker, shuffle) -> {
        ObjectSender<Row> sender = shuffle.sender().objects(MUTABLE);
        Row row = new Row(0);
        for (; row.value < rows; row.value++) {
          check(sender.send(1 - worker.number(), row));
        }
        check(shuffle.sender().finish());
        ObjectReceiver<Row> receiver = shuffle.receiver().objects(MUTABLE);
        for (long i = 0; i < rows; i++) {
          check(receiver.next());
          assertEquals(i, receiver.get().value);
        }
        assertEquals(Outcome.END_OF_STREAM, receiver.next());
      });
    }
  }

  @Test
  void whatGoesBeyondTheLimitIsSerialisedInOrder() {
    try (Cluster cluster = new Cluster("auto", 1, 1);
        Shuffle shuffle = cluster.worker(0).openShuffle(cluster.spec(0).withReferenceLimit(8))) {
      ObjectSender<Row> sender = shuffle.sender().objects(IMMUTABLE);
      ObjectReceiver<Row> receiver = shuffle.receiver().objects(IMMUTABLE);
      List<Row> sent = new ArrayList<>();
      for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 20; i++) {
          Row row = new Row(sent.size());
          sent.add(row);
          check(sender.send(0, row, Wait.NONE));
        }
        shuffle.sender().flush();
        for (int i = 0; i < 20; i++) {
          Row expected = sent.get(20 * round + i);
          Row row = next(receiver);
          assertEquals(expected.value, row.value);
          if (i < 8) {
            assertSame(expected, row);
          } else {
            assertNotSame(expected, row);
          }
        }
      }
      check(shuffle.sender().finish(Wait.NONE));
      assertEquals(Outcome.END_OF_STREAM, receiver.next(Wait.NONE));
    }
  }

  @Test
  void aLimitOfZeroSerialisesEverything() {
    try (Cluster cluster = new Cluster("auto", 1, 1);
        Shuffle shuffle = cluster.worker(0).openShuffle(cluster.spec(0).withReferenceLimit(0))) {
      Row row = new Row(7);
      check(shuffle.sender().objects(IMMUTABLE).send(0, row, Wait.NONE));
      check(shuffle.sender().finish(Wait.NONE));
      assertNotSame(row, next(shuffle.receiver().objects(IMMUTABLE)));
    }
  }

  @Test
  void whatIsBroadcastIsHandedToWorkersOfTheSameSessionWhileThereIsRoom() throws Exception {
    int rows = 20_000; // of which some meet a full ring, or a full lane
    List<Row> sent = new ArrayList<>();
    for (int i = 0; i < rows; i++) {
      sent.add(new Row(i));
    }
    try (Cluster cluster = new Cluster("shm", 2, 2)) {
      cluster.shuffle(cluster.spec(0).withReferenceLimit(64), (worker, shuffle) -> {
        ObjectSender<Row> sender = shuffle.sender().objects(IMMUTABLE);
        ObjectReceiver<Row> receiver = shuffle.receiver().objects(IMMUTABLE);
        int[] next = new int[4];
        int[] same = new int[4];
        for (int i = 0; i < rows; i++) {
          check(sender.broadcast(sent.get(i)));
          while (i % 1000 == 0 && receiver.next(Wait.NONE) == Outcome.DONE) {
            count(receiver, sent, next, same);
          }
        }
        check(shuffle.sender().finish());
        while (receiver.next() == Outcome.DONE) {
          count(receiver, sent, next, same);
        }
        for (int from = 0; from < 4; from++) {
          assertEquals(rows, next[from]);
          boolean local = from / 2 == worker.number() / 2;
          assertEquals(local, same[from] > 0, "from worker " + from);
          assertTrue(same[from] < rows, "the limit was never met");
        }
      });
    }
  }

  private static void count(ObjectReceiver<Row> receiver, List<Row> sent, int[] next, int[] same) {
    Row row = receiver.get();
    int from = receiver.sender();
    assertEquals(next[from], row.value);
    same[from] += row == sent.get(next[from]) ? 1 : 0;
    next[from]++;
  }

  @Test
  void ringAndLaneTogetherKeepTheOrderBetweenThreads() throws Exception {
    int rows = 100_000;
    AtomicLong received = new AtomicLong();
    try (Cluster cluster = new Cluster("shm", 2, 2)) {
      cluster.shuffle(cluster.spec(0).withReferenceLimit(64), (worker, shuffle) -> {
        ObjectSender<Row> sender = shuffle.sender().objects(IMMUTABLE);
        // Sends everything before it polls anything.
        for (long i = 0; i < rows; i++) {
          check(sender.send((int) (i % 4), new Row(i)));
        }
        check(shuffle.sender().finish());
        ObjectReceiver<Row> receiver = shuffle.receiver().objects(IMMUTABLE);
        long[] next = {worker.number(), worker.number(), worker.number(), worker.number()};
        while (receiver.next() == Outcome.DONE) {
          assertEquals(next[receiver.sender()], receiver.get().value);
          next[receiver.sender()] += 4;
          received.incrementAndGet();
        }
      });
    }
    assertEquals(4L * rows, received.get());
  }

  @Test
  void aRowByReferenceWakesItsReceiver() throws Exception {
    try (Cluster cluster = new Cluster(1, 2, c -> c.set(Setting.WAIT_SLEEP_MS, 10_000))) {
      int turns = 500;
      cluster.shuffle(0, (worker, shuffle) -> {
        ObjectSender<Row> sender = shuffle.sender().objects(IMMUTABLE);
        ObjectReceiver<Row> receiver = shuffle.receiver().objects(IMMUTABLE);
        for (int i = 0; i < turns; i++) {
          if (i % 2 == worker.number()) {
            check(sender.send(1 - worker.number(), new Row(i)));
          } else {
            check(receiver.next());
            assertEquals(i, receiver.get().value);
          }
        }
        check(shuffle.sender().finish());
        assertEquals(Outcome.END_OF_STREAM, receiver.next());
      });
    }
  }

  @Test
  void rowsThatWereNotReadArePassedOver() {
    try (Cluster cluster = new Cluster("auto", 1, 1);
        Shuffle shuffle = cluster.openShuffle(0)) {
      ObjectSender<Row> sender = shuffle.sender().objects(IMMUTABLE);
      check(sender.send(0, new Row(1), Wait.NONE));
      check(sender.send(0, new Row(2), Wait.NONE));
      shuffle.sender().flush();
      try (Batch unread = shuffle.receiver().newBatch()) {
        check(shuffle.receiver().receive(unread, Wait.NONE));
        failsBy(Code.WRONG_STATE, unread::nextRow);
      }
      check(sender.send(0, new Row(3), Wait.NONE));
      shuffle.sender().flush();
      assertEquals(3, next(shuffle.receiver().objects(IMMUTABLE)).value);
      check(shuffle.sender().finish(Wait.NONE));
    }
  }

  @Test
  void aReceiverThatStopsIsHandedNothingMore() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 1);
        Shuffle shuffle = cluster.openShuffle(0)) {
      Worker worker = cluster.worker(0);
      ObjectSender<Row> sender = shuffle.sender().objects(IMMUTABLE);
      check(sender.send(0, new Row(1), Wait.NONE));
      shuffle.receiver().stop();
      assertEquals(Outcome.END_OF_STREAM, shuffle.receiver().objects(IMMUTABLE).next(Wait.NONE));
      check(
          worker.waitUntil(
              () -> sender.send(0, new Row(2), Wait.NONE) == Outcome.STOPPED, Wait.atMost(Duration.ofSeconds(20))));
      check(shuffle.sender().finish(Wait.NONE));
    }
  }

  @Test
  void nothingIsKeptAliveOnceBothEndsAreClosed() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 2)) {
      ShuffleSpec spec = cluster.spec(0);
      List<WeakReference<Row>> rows = new ArrayList<>();
      CyclicBarrier barrier = new CyclicBarrier(2);
      cluster.onEachWorker(
          worker -> {
            Shuffle shuffle = worker.openShuffle(spec);
            if (worker.number() == 0) {
              ObjectSender<Row> sender = shuffle.sender().objects(IMMUTABLE);
              for (int i = 0; i < 100; i++) {
                Row row = new Row(i);
                rows.add(new WeakReference<>(row));
                check(sender.send(1, row));
              }
              shuffle.sender().flush();
              barrier.await();
              barrier.await();
              shuffle.cancel("in the middle");
            } else {
              barrier.await();
              ObjectReceiver<Row> receiver = shuffle.receiver().objects(IMMUTABLE);
              check(receiver.next());
              barrier.await();
              failsBy(Code.QUERY_CANCELLED, () -> {
                while (receiver.next() == Outcome.DONE) {}
              });
            }
            shuffle.close();
            failure(() -> worker.endQuery(spec.query()));
          });
      assertEquals(100, rows.size());
      for (long end = System.nanoTime() + 20_000_000_000L; rows.stream().anyMatch(row -> row.get() != null); System.gc()) {
        assertTrue(System.nanoTime() < end, "rows are kept alive");
      }
    }
  }
}
