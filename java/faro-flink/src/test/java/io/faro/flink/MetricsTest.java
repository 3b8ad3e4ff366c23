package io.faro.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.Gauge;
import org.apache.flink.metrics.Meter;
import org.apache.flink.metrics.MetricGroup;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.runtime.io.network.partition.consumer.SingleInputGate;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The gauges of a TaskManager say what its links have moved. */
@Timeout(value = 60, unit = TimeUnit.SECONDS)
@SuppressWarnings("try") // TestTaskManager.close
class MetricsTest {
  /** Keeps gauges, and what counters and meters say, by their names. */
  private static final class Group extends UnregisteredMetricsGroup {
    private final String path;
    private final Map<String, Gauge<?>> gauges;
    private final Set<String> counters;

    Group(String path, Map<String, Gauge<?>> gauges, Set<String> counters) {
      this.path = path;
      this.gauges = gauges;
      this.counters = counters;
    }

    @Override
    public MetricGroup addGroup(String name) {
      return new Group(path + name + ".", gauges, counters);
    }

    @Override
    public <T, G extends Gauge<T>> G gauge(String name, G gauge) {
      gauges.put(path + name, gauge);
      return gauge;
    }

    @Override
    public <C extends Counter> C counter(String name, C counter) {
      gauges.put(path + name, (Gauge<Long>) counter::getCount);
      counters.add(path + name);
      return counter;
    }

    @Override
    public <M extends Meter> M meter(String name, M meter) {
      gauges.put(path + name, (Gauge<Long>) meter::getCount);
      return meter;
    }
  }

  @Test
  void gaugesSayWhatWasMoved() throws Exception {
    ScriptedPartitions partitions = new ScriptedPartitions();
    ResultPartitionID partition = new ResultPartitionID();
    Map<String, Gauge<?>> gauges = new ConcurrentHashMap<>();
    Set<String> counters = ConcurrentHashMap.newKeySet();
    try (TestTaskManager producer =
            new TestTaskManager("producer", partitions, (to, event) -> false, new Configuration());
        TestTaskManager consumer =
            new TestTaskManager("consumer", partitions, (to, event) -> false, new Configuration())) {
      partitions.add(partition).add(TestBuffers.data(1, 20_000), TestBuffers.data(2, 20_000));
      SingleInputGate gate = consumer.gate(producer.connection(), partition, 2);
      for (int i = 0; i < 2; i++) {
        gate.getNext().orElseThrow().getBuffer().recycleBuffer();
      }
      FaroMetrics.register(consumer.connections, new Group("", gauges, counters));
      assertEquals(1L, gauges.get("Shuffle.Faro.linksShm").getValue());
      assertEquals(0L, gauges.get("Shuffle.Faro.linksTcp").getValue());
      assertEquals(1L, gauges.get("Shuffle.Faro.linksOpened").getValue());
      assertEquals(1L, gauges.get("Shuffle.Faro.subpartitionsRequested").getValue());
      assertEquals(2L, gauges.get("Shuffle.Faro.buffersReceived").getValue());
      assertTrue((long) gauges.get("Shuffle.Faro.bytesReceived").getValue() >= 40_000);
      assertTrue((long) gauges.get("Shuffle.Faro.wakeUps").getValue() > 0);
      assertEquals(2L, gauges.get("Shuffle.Faro.shm.buffersReceived").getValue());
      assertEquals(40_000L, gauges.get("Shuffle.Faro.shm.bytesReceived").getValue());
      assertEquals(40_000L, gauges.get("Shuffle.Faro.shm.bytesReceivedPerSecond").getValue()); // its count
      assertEquals(1L, gauges.get("Shuffle.Faro.shm.links").getValue());
      assertEquals(0L, gauges.get("Shuffle.Faro.tcp.bytesReceived").getValue());
      assertEquals(0L, gauges.get("Shuffle.Faro.memoryOfEndedLinks").getValue());
      for (String counted : List.of("bytesSent", "bytesReceived", "buffersReceived", "linksOpened", "noRoom", "tcp.bytesSent")) {
        assertTrue(counters.contains("Shuffle.Faro." + counted), counted);
      }
      assertEquals(64L << 20, gauges.get("Shuffle.Faro.memoryLimit").getValue());
    }
  }
}
