package io.faro.flink;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.management.ObjectName;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.runtime.io.network.partition.consumer.SingleInputGate;
import org.apache.flink.util.ExceptionUtils;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * What a TaskManager has of links that have ended: nothing, also if nobody has used them when their peers went. And how many
 * links it has room for.
 */
@Timeout(value = 120, unit = TimeUnit.SECONDS)
@SuppressWarnings("try") // TestTaskManager.close
class EndedLinksTest {
  private static final int EXPECTED = 4;
  private static final int PEERS = 30;

  private final ScriptedPartitions partitions = new ScriptedPartitions();
  private final List<TestTaskManager> open = new ArrayList<>();

  private TestTaskManager taskManager(Configuration configuration) throws IOException {
    TestTaskManager started =
        new TestTaskManager("tm-" + open.size(), partitions, (to, event) -> false, configuration);
    open.add(started);
    return started;
  }

  @AfterEach
  void close() throws Exception {
    for (TestTaskManager each : open) {
      each.close();
    }
  }

  /** Room for four links, and for half of one more. */
  private static Configuration configuration(String transport) {
    Configuration configuration = new Configuration();
    configuration.set(FaroOptions.TRANSPORT, transport);
    configuration.set(FaroOptions.MEMORY_LIMIT, MemorySize.parse("2600kb"));
    configuration.set(FaroOptions.LINKS_EXPECTED, EXPECTED);
    return configuration;
  }

  // A job: an exchange that begins and ends. The link stays.
  private void exchange(TestTaskManager consumer, TestTaskManager producer, int seed) throws Exception {
    ResultPartitionID partition = new ResultPartitionID();
    partitions.add(partition).add(TestBuffers.data(seed, 100));
    SingleInputGate gate = consumer.gate(producer.connection(), partition, 2);
    assertArrayEquals(TestBuffers.contents(seed, 100), TestBuffers.bytes(gate.getNext().orElseThrow().getBuffer()));
    consumer.close(gate);
    partitions.remove(partition);
  }

  private static void until(BooleanSupplier holds) {
    while (!holds.getAsBoolean()) {
      Thread.onSpinWait(); // the test has a limit
    }
  }

  private static long taken(TestTaskManager of) {
    return of.connections.metrics().memoryBytes();
  }

  /** Objects of that class on the heap, without garbage. */
  private static int countOf(Class<?> type) throws Exception {
    String histogram =
        (String)
            ManagementFactory.getPlatformMBeanServer()
                .invoke(
                    new ObjectName("com.sun.management:type=DiagnosticCommand"),
                    "gcClassHistogram",
                    new Object[] {new String[0]},
                    new String[] {String[].class.getName()});
    Matcher found = Pattern.compile("(\\d+) +\\d+ +" + Pattern.quote(type.getName()) + "(?: |$)", Pattern.MULTILINE).matcher(histogram);
    return found.find() ? Integer.parseInt(found.group(1)) : 0;
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void aLinkWhosePeerGoesWhileNobodyUsesItLeavesNothing(String transport) throws Exception {
    TestTaskManager survivor = taskManager(configuration(transport));
    for (int i = 0; i < PEERS; i++) {
      TestTaskManager peer = taskManager(configuration(transport));
      exchange(survivor, peer, i);
      exchange(peer, survivor, i);
      long both = taken(survivor);
      assertTrue(both > 0, "two links take " + both);
      peer.connections.shutdown();
      until(() -> survivor.connections.getNumberOfActiveConnections() == 0);
      until(() -> taken(survivor) == 0);
      until(() -> survivor.connections.memory().reserved() == 0);
    }
    assertEquals(0, countOf(ConsumerLink.class));
    assertEquals(0, countOf(ProducerLink.class));
    assertEquals(0, countOf(FaroPartitionRequestClient.class));
    assertEquals(0, countOf(MessageWriter.class));
  }

  @Test
  void halfOfThePeersAtOnceAreReplacedWithTheLimitNearlyFull() throws Exception {
    TestTaskManager survivor = taskManager(configuration("tcp"));
    List<TestTaskManager> peers = new ArrayList<>();
    for (int i = 0; i < EXPECTED; i++) {
      peers.add(taskManager(configuration("tcp")));
    }
    for (int round = 0; round < 10; round++) {
      for (TestTaskManager peer : peers) {
        exchange(survivor, peer, round);
      }
      long full = taken(survivor);
      for (int i = 0; i < EXPECTED / 2; i++) {
        peers.get(i).connections.shutdown();
        peers.set(i, taskManager(configuration("tcp")));
      }
      until(() -> survivor.connections.getNumberOfActiveConnections() == EXPECTED / 2);
      until(() -> taken(survivor) == full / 2);
    }
    assertEquals(EXPECTED / 2, countOf(FaroPartitionRequestClient.class));
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void moreLinksThanExpectedGetSmallerRingsUntilNothingIsLeft(String transport) throws Exception {
    Configuration configuration = configuration(transport);
    configuration.set(FaroOptions.MEMORY_LIMIT, MemorySize.parse("3000kb"));
    TestTaskManager consumer = taskManager(configuration);
    for (int i = 0; i < 2 * EXPECTED; i++) {
      exchange(consumer, taskManager(configuration(transport)), i);
    }
    IOException refused =
        assertThrows(
            IOException.class,
            () -> {
              for (int i = 0; i < 10 * EXPECTED; i++) {
                consumer.connections.createPartitionRequestClient(taskManager(configuration(transport)).connection());
              }
            });
    String text = ExceptionUtils.stringifyException(refused);
    assertTrue(text.contains("RESOURCE_LIMIT") && text.contains("of faro.memory.limit = 3072000"), text);
    assertTrue(text.contains("With a larger faro.memory.limit more links fit."), text);
    assertTrue(taken(consumer) <= 3072000);
  }
}
