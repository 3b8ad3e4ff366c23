package io.faro;

import static io.faro.Checks.check;
import static io.faro.Checks.failsBy;
import static io.faro.Checks.messageOf;
import static io.faro.Checks.received;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Many objects at a time, objects for many receivers, and iteration. */
@Timeout(20)
class ObjectStreamTest {
  @Test
  void sendsManyAndIteratesToTheEnd() throws Exception {
    List<String> words =
        IntStream.range(0, 30_000).mapToObj(i -> "word " + i).collect(Collectors.toList());
    try (Cluster cluster = new Cluster("tcp", 2, 1)) {
      cluster.shuffle(0, (worker, shuffle) -> {
        ObjectSender<String> sender = shuffle.sender().objects(RowCodecs.STRING);
        assertEquals(
            words.size() - 1,
            sender.sendAll(words, 1, words.size(), word -> word.hashCode() & 1));
        check(sender.stoppedBy());
        check(shuffle.sender().finish());
        List<List<String>> received = List.of(new ArrayList<>(), new ArrayList<>());
        ObjectReceiver<String> receiver = shuffle.receiver().objects(RowCodecs.STRING);
        for (String word : receiver) {
          received.get(receiver.sender()).add(word);
        }
        List<String> mine =
            words.subList(1, words.size()).stream()
                .filter(word -> (word.hashCode() & 1) == worker.number())
                .collect(Collectors.toList());
        assertEquals(List.of(mine, mine), received);
      });
    }
  }

  /** Once, for the width of rows and both sides. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aCodecIsNamedOnce(boolean withLength) throws Exception {
    Long sent = new Random(5).nextLong();
    try (Cluster cluster = new Cluster("auto", 1, 2)) {
      ShuffleSpec rows = cluster.spec(0, 0, 1);
      ObjectShuffleSpec<Long> spec =
          withLength ? new ObjectShuffleSpec<>(rows, RowCodecs.LONG) : rows.withRowsOf(RowCodecs.LONG);
      assertEquals(withLength ? 0 : Long.BYTES, spec.spec().rowBytes());
      try (ObjectShuffle<Long> from = cluster.worker(0).openShuffle(spec);
          ObjectShuffle<Long> to = cluster.worker(1).openShuffle(spec)) {
        assertSame(from.sender(), from.sender());
        check(from.sender().send(0, sent, Wait.NONE));
        check(from.sender().finish(Wait.NONE));
        check(to.receiver().next(Wait.NONE));
        assertEquals(sent, to.receiver().get());
        assertEquals(Outcome.END_OF_STREAM, to.merge(Comparator.naturalOrder()).next(Wait.NONE));

        FaroException noPart = failsBy(Code.WRONG_STATE, to::sender);
        assertEquals("worker 1 is no sender of stage 1", noPart.getMessage());
        failsBy(Code.WRONG_STATE, from::receiver);
      }
    }
  }

  @Test
  void anotherCodecThanTheOneThatAShuffleWasOpenedWithIsRefusedByBothNames() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 1)) {
      ShuffleSpec spec = ShuffleSpec.repartition(cluster.beginQuery(), 1);
      try (ObjectShuffle<String> words = cluster.worker(0).openShuffle(spec.withRowsOf(RowCodecs.STRING))) {
        FaroException other = failsBy(Code.INVALID_ARGUMENT, () -> words.shuffle().sender().objects(RowCodecs.BYTES));
        assertEquals("stage 1: worker 0 sends its rows as STRING, not as BYTES", other.getMessage());
        String read = "stage 1: worker 0 reads the rows as STRING, not as BYTES";
        assertEquals(read, messageOf(() -> words.shuffle().receiver().objects(RowCodecs.BYTES)));
      }
    }
  }

  @Test
  void nothingStaysOpenIfTheCodecThrows() throws Exception {
    RowCodec<Long> unnamed =
        new CodecAround<>(RowCodecs.LONG) {
          @Override
          public String format() {
            throw new UnsupportedOperationException("no format");
          }
        };
    try (Cluster cluster = new Cluster("auto", 1, 1)) {
      ShuffleSpec spec = ShuffleSpec.repartition(cluster.beginQuery(), 1);
      Worker worker = cluster.worker(0);
      assertThrows(UnsupportedOperationException.class, () -> worker.openShuffle(spec.withRowsOf(unnamed)));
      failsBy(Code.QUERY_CANCELLED, () -> worker.endQuery(spec.query()));
    }
  }

  @Test
  void sendsManyLongsWaitingForRoom() throws Exception {
    long[] rows = new Random(11).longs(200_000).toArray();
    AtomicLong sum = new AtomicLong();
    try (Cluster cluster = new Cluster("tcp", 2, 1)) {
      cluster.shuffle(8, (worker, shuffle) -> {
        LongSender sender = shuffle.sender().longs();
        assertEquals(rows.length, sender.sendAll(rows, 0, rows.length, Partition.FINALIZER));
        check(shuffle.sender().finish());
        for (long row : shuffle.receiver().objects(RowCodecs.LONG)) {
          assertEquals(worker.number(), Partition.FINALIZER.receiverOf(row, 2));
          sum.addAndGet(row);
        }
      });
    }
    assertEquals(2 * Arrays.stream(rows).sum(), sum.get());
  }

  @Test
  void sendsOneObjectToSomeOrAllReceivers() throws Exception {
    try (Cluster cluster = new Cluster("auto", 2, 2)) {
      cluster.shuffle(0, (worker, shuffle) -> {
        ObjectSender<String> sender = shuffle.sender().objects(RowCodecs.STRING);
        if (worker.number() == 0) {
          check(sender.broadcast("all"));
          check(sender.multicast(new int[] {3, 1}, "odd"));
          check(sender.send(1, "one"));
          check(sender.broadcast("all again", Wait.NONE));
          check(sender.multicast(new int[] {0}, "zero", Wait.NONE));
          failsBy(Code.INVALID_ARGUMENT, () -> sender.multicast(new int[] {0, 4}, "nobody", Wait.NONE));
          failsBy(Code.INVALID_ARGUMENT, () -> sender.multicast(new int[] {-1}, "nobody", Wait.NONE));
        }
        check(shuffle.sender().finish());
        List<String> received = new ArrayList<>();
        shuffle.receiver().objects(RowCodecs.STRING).forEach(received::add);
        assertEquals(
            List.of(
                    List.of("all", "all again", "zero"),
                    List.of("all", "odd", "one", "all again"),
                    List.of("all", "all again"),
                    List.of("all", "odd", "all again"))
                .get(worker.number()),
            received);
      });
    }
  }

  @Test
  void anArrayIsTakenUpToWhereAReceiverHasNoRoom() {
    List<String> words = IntStream.range(0, 10_000).mapToObj(i -> "word").collect(Collectors.toList());
    try (Cluster cluster = new Cluster("shm", 2, 1);
        Shuffle shuffle = cluster.openShuffle(0)) {
      ObjectSender<String> sender = shuffle.sender().objects(RowCodecs.STRING);
      int taken = sender.sendAll(words, 0, words.size(), word -> 1, Wait.NONE);
      assertEquals(Outcome.WOULD_WAIT, sender.stoppedBy());
      assertTrue(taken > 0 && taken < words.size(), "taken " + taken);
      assertEquals(0, sender.sendAll(words, 0, 1, word -> 1, Wait.NONE));
    }
  }

  @Test
  void theReceiverOfEachLongIsAskedForOnceAlsoWhereAFrameIsFull() throws Exception {
    List<Long> rows = LongStream.range(0, 100_000).boxed().collect(Collectors.toList());
    try (Cluster cluster = new Cluster("shm", 2, 1)) {
      cluster.shuffle(cluster.spec(Long.BYTES, 0, 1), (worker, shuffle) -> {
        if (worker.number() == 0) {
          int[] asked = {0};
          ObjectSender<Long> sender = shuffle.sender().objects(RowCodecs.LONG);
          int taken = sender.sendAll(rows, 0, 1000, row -> asked[0]++ * 0, Wait.NONE);
          while (taken < 1000) {
            assertEquals(Outcome.WOULD_WAIT, sender.stoppedBy());
            worker.waitUntil(() -> true);
            asked[0] = taken; // of the one that found no room, again
            taken += sender.sendAll(rows, taken, 1000, row -> asked[0]++ * 0, Wait.NONE);
          }
          assertEquals(1000, asked[0]);
          assertEquals(0, sender.sendAll(rows, 1000, 1000, row -> asked[0]++ * 0, Wait.NONE));
          assertEquals(
              rows.size() - 1000, sender.sendAll(rows, 1000, rows.size(), row -> asked[0]++ * 0));
          assertEquals(rows.size(), asked[0]);
          shuffle.sender().finish();
        } else {
          long[] next = {0};
          ObjectReceiver<Long> receiver = shuffle.receiver().objects(RowCodecs.LONG);
          while (receiver.drain(row -> assertEquals(next[0]++, row)) == Outcome.DONE) {
            // until the end
          }
          assertEquals(rows.size(), next[0]);
        }
      });
    }
  }

  @Test
  void anIteratorThatIsInterruptedGoesOn() {
    try (Cluster cluster = new Cluster("auto", 1, 1);
        Shuffle shuffle = cluster.openShuffle(0)) {
      Iterator<String> words = shuffle.receiver().objects(RowCodecs.STRING).iterator();
      Thread.currentThread().interrupt();
      failsBy(Code.CANCELLED, words::hasNext);
      assertTrue(Thread.interrupted());
      check(shuffle.sender().objects(RowCodecs.STRING).send(0, "word", Wait.NONE));
      check(shuffle.sender().finish(Wait.NONE));
      assertTrue(words.hasNext());
      assertTrue(words.hasNext());
      assertEquals("word", words.next());
      assertFalse(words.hasNext());
      assertThrows(NoSuchElementException.class, words::next);
    }
  }

  @Test
  void anIteratorNeverWaitsWhileItsWorkerHoldsFrames() {
    try (Cluster cluster = new Cluster("auto", 1, 1);
        Shuffle shuffle = cluster.openShuffle(0)) {
      check(shuffle.sender().send(0, new byte[1], 0, 1, Wait.NONE));
      shuffle.sender().flush();
      Batch held = received(shuffle);
      Iterator<String> words = shuffle.receiver().objects(RowCodecs.STRING).iterator();
      failsBy(Code.HOLDING, words::hasNext);
      held.release();
      check(shuffle.sender().finish(Wait.NONE));
      assertFalse(words.hasNext());
    }
  }

  /** Sends to itself and receives by draining; `rowBytes` 0: a length with each row. */
  private static List<Long> drained(int rowBytes, List<Long> rows, boolean failing) {
    List<Long> received = new ArrayList<>();
    try (Cluster cluster = new Cluster("shm", 1, 1);
        Shuffle shuffle = cluster.openShuffle(rowBytes)) {
      ObjectSender<Long> sender = shuffle.sender().objects(RowCodecs.LONG);
      rows.forEach(row -> check(sender.send(0, row, Wait.NONE)));
      check(shuffle.sender().finish(Wait.NONE));
      ObjectReceiver<Long> receiver = shuffle.receiver().objects(RowCodecs.LONG);
      check(receiver.next(Wait.NONE));
      received.add(receiver.get());
      Outcome outcome = Outcome.DONE;
      while (outcome == Outcome.DONE) {
        try {
          outcome =
              receiver.drain(
                  row -> {
                    received.add(row);
                    if (failing && row % 100 == 50) {
                      throw new IllegalStateException("as the test wants");
                    }
                  }, Wait.NONE);
        } catch (IllegalStateException expected) {
          assertTrue(failing);
        }
      }
      assertEquals(Outcome.END_OF_STREAM, outcome);
      assertEquals(null, receiver.get());
    }
    return received;
  }

  @Test
  void aRowThatItsCodecRefusesIsPassedOver() {
    RowCodec<Long> even =
        RowCodecs.fixed(
            Long.BYTES,
            (value, to) -> to.putLong(0, value),
            (from, at) -> {
              if (from.getLong(at) % 2 != 0) {
                throw new IllegalStateException("as the test wants");
              }
              return from.getLong(at);
            });
    try (Cluster cluster = new Cluster("shm", 1, 1);
        Shuffle shuffle = cluster.openShuffle(Long.BYTES)) {
      ObjectSender<Long> sender = shuffle.sender().objects(even);
      for (long row : new long[] {0, 1, 2}) {
        check(sender.send(0, row, Wait.NONE));
      }
      check(shuffle.sender().finish(Wait.NONE));
      ObjectReceiver<Long> receiver = shuffle.receiver().objects(even);
      List<Long> received = new ArrayList<>();
      assertThrows(IllegalStateException.class, () -> receiver.drain(received::add, Wait.NONE));
      check(receiver.drain(received::add, Wait.NONE));
      assertEquals(List.of(0L, 2L), received);
      assertEquals(Outcome.END_OF_STREAM, receiver.next(Wait.NONE));
    }
  }

  @Test
  void drainsWhatWasNotReadYet() {
    List<Long> rows = LongStream.range(0, 2000).boxed().collect(Collectors.toList());
    assertEquals(rows, drained(Long.BYTES, rows, false));
    assertEquals(rows, drained(0, rows, false));
  }

  @ParameterizedTest
  @ValueSource(ints = {Long.BYTES, 0})
  void whoDrainsWaitsForRowsAndThenHoldsNone(int rowBytes) throws Exception {
    List<Long> rows = LongStream.range(0, 30_000).boxed().collect(Collectors.toList());
    List<Long> received = new ArrayList<>();
    try (Cluster cluster = new Cluster("shm", 1, 2)) {
      cluster.shuffle(cluster.spec(rowBytes, 0, 1), (worker, shuffle) -> {
        if (worker.number() == 0) {
          assertEquals(rows.size(), shuffle.sender().objects(RowCodecs.LONG).sendAll(rows, 0, rows.size(), row -> 0));
          check(shuffle.sender().finish());
        } else {
          ObjectReceiver<Long> receiver = shuffle.receiver().objects(RowCodecs.LONG);
          Outcome outcome = receiver.drain(received::add);
          while (outcome == Outcome.DONE) {
            // HOLDING if it still had the batch.
            assertEquals(Outcome.DEADLINE, worker.waitUntil(() -> false, Wait.atMost(Duration.ofNanos(1))));
            outcome = receiver.drain(received::add);
          }
          assertEquals(Outcome.END_OF_STREAM, outcome);
        }
      });
    }
    assertEquals(rows, received);
  }

  @Test
  void whoThrowsWhileDrainingGetsTheRestTheNextTime() {
    List<Long> rows = LongStream.range(0, 2000).boxed().collect(Collectors.toList());
    assertEquals(rows, drained(Long.BYTES, rows, true));
    assertEquals(rows, drained(0, rows, true));
  }
}
