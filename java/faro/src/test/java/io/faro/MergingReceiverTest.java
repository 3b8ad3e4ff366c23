package io.faro;

import static io.faro.Checks.failsBy;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Timeout(30)
class MergingReceiverTest {
  private static final int SENDER_BITS = 8; // the low ones of a row say who has sent it
  private static final Comparator<Long> BY_KEY = Comparator.comparingLong(row -> row >> SENDER_BITS);

  /** A few thousand keys with many duplicates; none of worker 1. */
  private static long[] sorted(int worker) {
    return worker == 1
        ? new long[0]
        : new Random(worker).longs(5000 + 300 * worker, 0, 2000).sorted().map(key -> key << SENDER_BITS | worker).toArray();
  }

  private static Cluster smallRings(String transport, int nodes, int workers) {
    return new Cluster(
        nodes, workers, config -> config.set(Setting.TRANSPORT, transport).set(Setting.RING_BYTES, "4KiB"));
  }

  private static void checkMerged(List<Long> merged, int workers) {
    LongStream all = IntStream.range(0, workers).boxed().flatMapToLong(worker -> LongStream.of(sorted(worker)));
    // By key, then by worker: equal ones come in the order of the senders.
    assertEquals(all.sorted().boxed().toList(), merged);
  }

  @ParameterizedTest
  @CsvSource({"shm,1,1", "shm,1,2", "shm,3,1", "tcp,2,2", "shm,1,5"})
  void whatEachSenderHasSortedComesSortedFromAll(String transport, int nodes, int workers) throws Exception {
    try (Cluster cluster = smallRings(transport, nodes, workers)) {
      cluster.shuffle(0, (worker, shuffle) -> {
        ObjectSender<Long> sender = shuffle.sender().objects(RowCodecs.LONG);
        for (long row : sorted(worker.number())) {
          assertEquals(Outcome.DONE, sender.broadcast(row));
        }
        assertEquals(Outcome.DONE, shuffle.sender().finish());
        List<Long> merged = new ArrayList<>();
        shuffle.receiver().merge(RowCodecs.LONG, BY_KEY).forEach(merged::add);
        checkMerged(merged, nodes * workers);
      });
    }
  }

  /** In turns: the worker may wait between them, as it holds nothing. */
  @Test
  void oneThatDoesNotWaitHoldsNothingWhenItHasNothing() throws Exception {
    try (Cluster cluster = smallRings("shm", 2, 1)) {
      cluster.shuffle(8, (worker, shuffle) -> {
        ObjectSender<Long> sender = shuffle.sender().objects(RowCodecs.LONG);
        MergingReceiver<Long> receiver = shuffle.receiver().merge(RowCodecs.LONG, BY_KEY);
        long[] rows = sorted(2 * worker.number());
        List<Long> merged = new ArrayList<>();
        int[] sent = {0};
        boolean[] finished = {false};
        Outcome[] last = {Outcome.WOULD_WAIT};
        while (last[0] != Outcome.END_OF_STREAM || !finished[0]) {
          assertEquals(
              Outcome.DONE,
              worker.waitUntil(
                  () -> {
                    boolean progress = false;
                    while (sent[0] < rows.length && sender.broadcast(rows[sent[0]], Wait.NONE) == Outcome.DONE) {
                      sent[0]++;
                      progress = true;
                    }
                    if (sent[0] == rows.length && !finished[0]) {
                      finished[0] = shuffle.sender().finish(Wait.NONE) == Outcome.DONE;
                      progress |= finished[0];
                    }
                    while ((last[0] = receiver.next(Wait.NONE)) == Outcome.DONE) {
                      assertEquals(receiver.get() & 0xff, 2 * receiver.sender());
                      merged.add(receiver.get());
                      progress = true;
                    }
                    return progress || last[0] == Outcome.END_OF_STREAM;
                  }));
        }
        assertNull(receiver.get());
        assertEquals(sorted(0).length + sorted(2).length, merged.size());
        assertEquals(merged.stream().sorted(BY_KEY).toList(), merged);
      });
    }
  }

  @Test
  void sidesAreNamedByTheirPlaceInTheLists() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 3)) {
      ShuffleSpec spec = cluster.spec(8).withSenders(2, 0).withReceivers(1);
      Shuffle at = cluster.worker(1).openShuffle(spec);
      for (int from : spec.senders()) {
        try (Shuffle shuffle = cluster.worker(from).openShuffle(spec)) {
          assertEquals(Outcome.DONE, shuffle.sender().longs().send(0, from, Wait.NONE));
          assertEquals(Outcome.DONE, shuffle.sender().finish(Wait.NONE));
          assertEquals(List.of(0), shuffle.metrics().sent().stream().map(SentMetrics::receiver).toList());
        }
      }
      Batch batch = at.receiver().newBatch();
      assertEquals(Outcome.DONE, at.receiver().receiveFrom(1, batch));
      assertEquals(0, batch.getLong(0));
      assertEquals(1, batch.sender());
      batch.release();
      MergingReceiver<Long> merged = at.receiver().merge(RowCodecs.LONG, Comparator.naturalOrder());
      assertEquals(Outcome.DONE, merged.next());
      assertEquals(2, merged.get());
      assertEquals(0, merged.sender());
      assertEquals(Outcome.END_OF_STREAM, merged.next());
      assertEquals(List.of(0, 1), at.metrics().received().stream().map(ReceivedMetrics::sender).toList());
      failsBy(Code.INVALID_ARGUMENT, () -> at.receiver().receiveFrom(2, batch), "sender 2 does not exist");
      at.close();
    }
  }

  @Test
  void aSenderThatDoesNotSortIsNamed() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 1);
        Shuffle shuffle = cluster.openShuffle(8)) {
      LongSender sender = shuffle.sender().longs();
      for (long row : new long[] {1, 3, 2}) {
        assertEquals(Outcome.DONE, sender.send(0, row, Wait.NONE));
      }
      assertEquals(Outcome.DONE, shuffle.sender().finish(Wait.NONE));
      MergingReceiver<Long> receiver = shuffle.receiver().merge(RowCodecs.LONG, Comparator.naturalOrder());
      for (long row : new long[] {1, 3}) {
        assertEquals(Outcome.DONE, receiver.next());
        assertEquals(row, receiver.get());
      }
      failsBy(Code.INVALID_ARGUMENT, receiver::next, "the objects of worker 0 are not sent in the order");
    }
  }

  @Test
  void itAnswersByItsWaitAsLongAsASenderHasSentNothing() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 2)) {
      ShuffleSpec spec = cluster.spec(8);
      Shuffle silent = cluster.worker(1).openShuffle(spec);
      Shuffle shuffle = cluster.worker(0).openShuffle(spec);
      assertEquals(Outcome.DONE, shuffle.sender().longs().send(0, 7));
      shuffle.sender().flush();
      MergingReceiver<Long> receiver = shuffle.receiver().merge(RowCodecs.LONG, BY_KEY);
      assertEquals(Outcome.WOULD_WAIT, receiver.next(Wait.NONE));
      assertEquals(Outcome.DEADLINE, receiver.next(Wait.atMost(1_000_000)));
      assertNull(receiver.get());
      assertEquals(-1, receiver.sender());
      assertEquals(Outcome.DONE, silent.sender().finish(Wait.NONE));
      assertEquals(Outcome.DONE, receiver.next());
      assertEquals(7L, receiver.get());
      assertEquals(0, receiver.sender());
      shuffle.close();
      silent.close();
    }
  }
}
