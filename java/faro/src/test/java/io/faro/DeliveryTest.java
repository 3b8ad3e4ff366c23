package io.faro;

import static io.faro.Checks.check;
import static io.faro.Checks.drainLongs;
import static io.faro.Checks.failsBy;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Rows that any worker of a node takes. */
@Timeout(60)
class DeliveryTest {
  private static Cluster cluster(String transport) {
    return new Cluster(
        2,
        2,
        config -> config.set(Setting.TRANSPORT, transport).set(Setting.LANE_ENDS, "node"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void eachRowIsHandedOutOnceToSomeWorkerOfItsNode(String transport) throws Exception {
    int rows = 2_000;
    List<Set<Long>> got = List.of(ConcurrentHashMap.newKeySet(), ConcurrentHashMap.newKeySet());
    try (Cluster cluster = cluster(transport)) {
      ShuffleSpec spec = cluster.spec(Long.BYTES).withDelivery(Delivery.NODE);
      cluster.onEachWorker(
          worker -> {
            Shuffle shuffle = worker.openShuffle(spec);
            assertEquals(2, shuffle.sender().receiverCount());
            LongSender longs = shuffle.sender().longs();
            for (int row = 0; row < rows; row++) {
              check(longs.send(row % 2, (long) worker.number() * rows + row));
            }
            check(shuffle.sender().finish());
            Set<Long> ofNode = got.get(worker.number() / 2);
            drainLongs(shuffle, row -> assertTrue(ofNode.add(row), "twice: " + row));
            shuffle.close();
            worker.endQuery(spec.query());
          });
    }
    for (int node = 0; node < 2; node++) {
      assertEquals(4 * rows / 2, got.get(node).size(), "node " + node);
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
