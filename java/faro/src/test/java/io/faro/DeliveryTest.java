package io.faro;

import static io.faro.Checks.check;
import static io.faro.Checks.drainLongs;
import static io.faro.Checks.failsBy;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Rows that any worker of a node takes, and rows that all get. */
@Timeout(60)
class DeliveryTest {
  private static final int ROWS = 2_000; // of each sender
  private static final List<String> OBJECTS =
      List.of("one", "two", "three", "x".repeat(100_000), "five"); // one is larger than a frame

  private static Cluster cluster(String transport, String ends) {
    return new Cluster(
        2,
        2,
        config -> config.set(Setting.TRANSPORT, transport).set(Setting.LANE_ENDS, ends));
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void eachRowIsHandedOutOnceToSomeWorkerOfItsNode(String transport) throws Exception {
    List<Set<Long>> got = List.of(ConcurrentHashMap.newKeySet(), ConcurrentHashMap.newKeySet());
    try (Cluster cluster = cluster(transport, "node")) {
      ShuffleSpec spec = cluster.spec(Long.BYTES).withDelivery(Delivery.NODE);
      cluster.onEachWorker(
          worker -> {
            Shuffle shuffle = worker.openShuffle(spec);
            assertEquals(2, shuffle.sender().receiverCount());
            LongSender longs = shuffle.sender().longs();
            for (int row = 0; row < ROWS; row++) {
              check(longs.send(row % 2, (long) worker.number() * ROWS + row));
            }
            check(shuffle.sender().finish());
            Set<Long> ofNode = got.get(worker.number() / 2);
            drainLongs(shuffle, row -> assertTrue(ofNode.add(row), "twice: " + row));
            shuffle.close();
            worker.endQuery(spec.query());
          });
    }
    for (int node = 0; node < 2; node++) {
      assertEquals(4 * ROWS / 2, got.get(node).size(), "node " + node);
    }
  }

  @ParameterizedTest
  @CsvSource({"shm, node", "tcp, node", "shm, both", "tcp, both"})
  void eachWorkerGetsEveryRowOfABroadcastInTheOrderOfItsSender(String transport, String ends)
      throws Exception {
    List<ShuffleMetrics> all = Collections.synchronizedList(new ArrayList<>());
    try (Cluster cluster = cluster(transport, ends)) {
      ShuffleSpec spec = cluster.spec(Long.BYTES).withDelivery(Delivery.REPLICATE);
      cluster.shuffle(
          spec,
          (worker, shuffle) -> {
            assertEquals(1, shuffle.sender().receiverCount());
            LongSender longs = shuffle.sender().longs();
            for (int row = 0; row < ROWS; row++) {
              check(longs.send(0, (long) worker.number() * ROWS + row));
            }
            check(shuffle.sender().finish());
            int[] next = new int[4]; // row of each sender
            drainLongs(
                shuffle, row -> assertEquals(next[(int) (row / ROWS)]++, row % ROWS, "of " + row));
            assertArrayEquals(new int[] {ROWS, ROWS, ROWS, ROWS}, next);
            all.add(shuffle.metrics());
          });
    }
    for (ShuffleMetrics metrics : all) {
      assertEquals(
          List.of((long) ROWS, (long) ROWS), // a row goes to each node once
          metrics.sent().stream().map(SentMetrics::rows).toList());
      assertEquals(4L * ROWS, metrics.received().stream().mapToLong(ReceivedMetrics::rows).sum());
    }
  }

  /** Sends the next object, each by another call. */
  private static Outcome produce(ObjectSender<String> sender, AtomicInteger next) {
    if (next.get() == OBJECTS.size()) {
      return Outcome.END_OF_STREAM;
    }
    String object = OBJECTS.get(next.get());
    Outcome sent =
        switch (next.get()) {
          case 0 -> sender.sendAll(OBJECTS, 0, 1, any -> 0, Wait.NONE) == 1
              ? Outcome.DONE
              : sender.stoppedBy();
          case 1 -> sender.broadcast(object, Wait.NONE);
          case 2 -> sender.multicast(new int[] {0}, object, Wait.NONE);
          default -> sender.send(0, object, Wait.NONE);
        };
    if (sent == Outcome.DONE) {
      next.incrementAndGet();
    }
    return sent;
  }

  @ParameterizedTest
  @CsvSource({"shm, node", "tcp, both"})
  void objectsAreSentToAllListedWorkersByOneReceiver(String transport, String ends)
      throws Exception {
    List<List<String>> got =
        List.of(new ArrayList<>(), new ArrayList<>(), new ArrayList<>(), new ArrayList<>());
    AtomicInteger next = new AtomicInteger(); // of the objects
    try (Cluster cluster = cluster(transport, ends)) {
      ShuffleSpec spec =
          ShuffleSpec.repartition(cluster.beginQuery(), 1)
              .withSenders(1)
              .withReceivers(0, 3, 2)
              .withDelivery(Delivery.REPLICATE);
      cluster.onEachWorker(
          worker -> {
            boolean sends = worker.number() == 1;
            try (ObjectShuffle<String> shuffle =
                worker.openShuffle(spec.withRowsOf(RowCodecs.STRING))) {
              assertNotEquals(sends, shuffle.shuffle().isReceiver());
              ExchangePart part =
                  ExchangePart.of(
                      shuffle,
                      sends ? sender -> produce(sender, next) : null,
                      sends ? null : got.get(worker.number())::add);
              assertEquals(Outcome.END_OF_STREAM, worker.exchange(List.of(part)));
            }
            worker.endQuery(spec.query());
          });
    }
    assertEquals(List.of(OBJECTS, List.of(), OBJECTS, OBJECTS), got);
  }

  @Test
  void rowsThatAnyWorkerTakesCannotBeMerged() {
    try (Cluster cluster = cluster("shm", "both")) {
      ShuffleSpec spec = cluster.spec(Long.BYTES).withDelivery(Delivery.NODE);
      try (Shuffle shuffle = cluster.worker(0).openShuffle(spec)) {
        MergingReceiver<Long> merged =
            shuffle.receiver().merge(RowCodecs.LONG, Comparator.naturalOrder());
        failsBy(
            Code.WRONG_STATE, () -> merged.next(Wait.NONE), "delivery = node", "call receive");
      }
    }
  }

  @Test
  void lanesHaveToEndAtNodes() {
    try (Cluster cluster = new Cluster("tcp", 1, 2)) {
      ShuffleSpec spec = cluster.spec(Long.BYTES).withDelivery(Delivery.NODE);
      failsBy(
          Code.INVALID_ARGUMENT,
          () -> cluster.worker(0).openShuffle(spec),
          "delivery = node",
          "lane.ends = workers");
    }
  }

  @Test
  void aSpecHasItsDeliveryWhateverElseIsChanged() {
    QueryId query = new QueryId(1, 2, 0);
    ShuffleSpec spec = ShuffleSpec.repartition(query, 1).withDelivery(Delivery.NODE);
    assertEquals(Delivery.NODE, spec.withSenders(1).withReceivers(0).withRowBytes(8).delivery());
    assertEquals(Delivery.NODE, spec.withGroups(IntStream.of(0).toArray()).delivery());
    assertNotEquals(spec, spec.withDelivery(Delivery.WORKER));
    assertTrue(spec.toString().contains("delivery NODE"), spec.toString());
  }
}
