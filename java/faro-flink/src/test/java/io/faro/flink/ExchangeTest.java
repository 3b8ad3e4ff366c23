package io.faro.flink;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.runtime.checkpoint.CheckpointOptions;
import org.apache.flink.runtime.event.TaskEvent;
import org.apache.flink.runtime.io.network.api.CheckpointBarrier;
import org.apache.flink.runtime.io.network.api.EndOfPartitionEvent;
import org.apache.flink.runtime.io.network.api.EndOfSuperstepEvent;
import org.apache.flink.runtime.io.network.buffer.Buffer;
import org.apache.flink.runtime.io.network.netty.exception.RemoteTransportException;
import org.apache.flink.runtime.io.network.partition.BufferAvailabilityListener;
import org.apache.flink.runtime.io.network.partition.PartitionNotFoundException;
import org.apache.flink.runtime.io.network.partition.PartitionRequestListener;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.runtime.io.network.partition.ResultPartitionManager;
import org.apache.flink.runtime.io.network.partition.ResultSubpartitionIndexSet;
import org.apache.flink.runtime.io.network.partition.ResultSubpartitionView;
import org.apache.flink.runtime.io.network.partition.consumer.BufferOrEvent;
import org.apache.flink.runtime.io.network.partition.consumer.RemoteInputChannel;
import org.apache.flink.runtime.io.network.partition.consumer.SingleInputGate;
import org.apache.flink.util.ExceptionUtils;
import org.apache.flink.util.concurrent.ScheduledExecutorServiceAdapter;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Gates of one TaskManager read subpartitions of another one, in one process, over real channels. */
@Timeout(value = 60, unit = TimeUnit.SECONDS)
class ExchangeTest {
  private final ScriptedPartitions partitions = new ScriptedPartitions();
  private final BlockingQueue<TaskEvent> published = new LinkedBlockingQueue<>();
  private final ResultPartitionID partition = new ResultPartitionID();
  private volatile boolean receivesEvents = true;
  private TestTaskManager producer;
  private TestTaskManager consumer;

  private void start(Configuration configuration) throws IOException {
    producer =
        new TestTaskManager(
            "producer",
            partitions,
            (to, event) -> {
              if (event instanceof TestBuffers.NumberedEvent numbered && numbered.number < 0) {
                throw new IllegalStateException("a negative event");
              }
              published.add(event);
              return receivesEvents;
            },
            configuration);
    consumer = new TestTaskManager("consumer", new ScriptedPartitions(), (to, event) -> false, configuration);
  }

  private void start() throws IOException {
    start(new Configuration());
  }

  private SingleInputGate gate(int buffers) throws Exception {
    return consumer.gate(producer.connection(), partition, buffers);
  }

  @AfterEach
  void close() throws Exception {
    if (consumer != null) {
      consumer.close();
    }
    if (producer != null) {
      producer.close();
    }
  }

  private static BufferOrEvent next(SingleInputGate gate) throws Exception {
    return gate.getNext().orElseThrow();
  }

  private static void expectData(SingleInputGate gate, int seed, int bytes) throws Exception {
    BufferOrEvent next = next(gate);
    assertTrue(next.isBuffer(), next.toString());
    assertArrayEquals(TestBuffers.contents(seed, bytes), TestBuffers.bytes(next.getBuffer()));
  }

  @ParameterizedTest
  @CsvSource({"shm, 64", "tcp, 64", "shm, 3", "tcp, 3"})
  void buffersArriveInOrderWithFewCredits(String transport, int megabytes) throws Exception {
    Configuration configuration = new Configuration();
    configuration.set(FaroOptions.TRANSPORT, transport);
    configuration.set(FaroOptions.MEMORY_LIMIT, MemorySize.ofMebiBytes(megabytes));
    start(configuration);
    ScriptedView view = partitions.add(partition);
    SingleInputGate gate = gate(2);
    for (int i = 0; i < 400; i++) {
      view.add(TestBuffers.data(i, i * 997 % TestTaskManager.SEGMENT_BYTES + 1));
    }
    view.add(TestBuffers.event(EndOfPartitionEvent.INSTANCE, false));
    for (int i = 0; i < 400; i++) {
      expectData(gate, i, i * 997 % TestTaskManager.SEGMENT_BYTES + 1);
    }
    assertInstanceOf(EndOfPartitionEvent.class, next(gate).getEvent());
    view.awaitRelease();
  }

  @ParameterizedTest
  @CsvSource({"shm, 64", "tcp, 64", "shm, 3", "tcp, 3"})
  void aLinkTakesNoMoreMemoryThanIsReckoned(String transport, int megabytes) throws Exception {
    Configuration configuration = new Configuration();
    configuration.set(FaroOptions.TRANSPORT, transport);
    configuration.set(FaroOptions.MEMORY_LIMIT, MemorySize.ofMebiBytes(megabytes));
    start(configuration);
    partitions.add(partition).add(TestBuffers.data(1, 10));
    expectData(gate(2), 1, 10);
    long share = configuration.get(FaroOptions.MEMORY_LIMIT).getBytes() / 64;
    for (TestTaskManager side : List.of(producer, consumer)) {
      long taken = side.connections.metrics().memoryBytes();
      assertTrue(taken > 0 && taken <= share, taken + " of " + share);
    }
  }

  @Test
  void aGateThatIsNotReadStopsItsOwnSubpartitionOnly() throws Exception {
    start();
    ScriptedView stopped = partitions.add(partition);
    ResultPartitionID other = new ResultPartitionID();
    ScriptedView flowing = partitions.add(other);
    SingleInputGate unread = gate(2);
    SingleInputGate read = consumer.gate(producer.connection(), other, 2);
    for (int i = 0; i < 200; i++) {
      stopped.add(TestBuffers.data(i, TestTaskManager.SEGMENT_BYTES));
      flowing.add(TestBuffers.data(i, TestTaskManager.SEGMENT_BYTES));
    }
    for (int i = 0; i < 200; i++) {
      expectData(read, i, TestTaskManager.SEGMENT_BYTES);
    }
    assertTrue(stopped.taken() <= 2 + 8, stopped.taken() + " buffers were sent without credits");
    assertEquals(1, consumer.connections.getNumberOfActiveConnections());
    for (int i = 0; i < 200; i++) {
      expectData(unread, i, TestTaskManager.SEGMENT_BYTES);
    }
  }

  @Test
  void aConsumerWithoutBuffersOfItsOwnLearnsOfTheBacklog() throws Exception {
    start();
    ScriptedView view = partitions.add(partition);
    SingleInputGate gate = gate(0);
    for (int i = 0; i < 50; i++) {
      view.add(TestBuffers.data(i, 1000));
    }
    for (int i = 0; i < 50; i++) {
      expectData(gate, i, 1000);
    }
  }

  @Test
  void aConsumerThatHasGivenItsBuffersBackAtABarrierGetsOthers() throws Exception {
    start();
    ScriptedView view = partitions.add(partition);
    for (int i = 0; i < 50; i++) {
      if (i == 25) {
        view.add(TestBuffers.event(barrier(), false));
      }
      view.add(TestBuffers.data(i, 1000));
    }
    SingleInputGate gate = gate(0);
    for (int i = 0; i < 50; i++) {
      if (i == 25) {
        assertInstanceOf(CheckpointBarrier.class, next(gate).getEvent());
        gate.resumeConsumption(gate.getChannel(0).getChannelInfo());
      }
      expectData(gate, i, 1000);
    }
  }

  private static CheckpointBarrier barrier() {
    return new CheckpointBarrier(
        1, 1, CheckpointOptions.forCheckpointWithDefaultLocation()); // aligned: the producer stops behind it
  }

  @Test
  void eventsNeedNoCreditsAndThoseWithPriorityComeFirst() throws Exception {
    start();
    ScriptedView view = partitions.add(partition);
    view.add(
        TestBuffers.data(1, 100),
        TestBuffers.event(EndOfSuperstepEvent.INSTANCE, false),
        TestBuffers.event(new TestBuffers.LargeEvent(7, 10), true));
    SingleInputGate gate = gate(2);
    BufferOrEvent first = next(gate);
    assertTrue(first.hasPriority());
    assertEquals(10, ((TestBuffers.LargeEvent) first.getEvent()).payload.length);
    expectData(gate, 1, 100);
    assertInstanceOf(EndOfSuperstepEvent.class, next(gate).getEvent());
  }

  @ParameterizedTest
  @CsvSource({"shm", "tcp"})
  void eventsThatAreLargerThanARingArrive(String transport) throws Exception {
    Configuration configuration = new Configuration();
    configuration.set(FaroOptions.TRANSPORT, transport);
    start(configuration);
    ScriptedView view = partitions.add(partition);
    SingleInputGate gate = gate(2);
    view.add(
        TestBuffers.event(new TestBuffers.LargeEvent(3, 5_000_000), false),
        TestBuffers.data(1, 100),
        TestBuffers.event(new TestBuffers.LargeEvent(4, 200_000), false));
    assertArrayEquals(
        TestBuffers.contents(3, 5_000_000), ((TestBuffers.LargeEvent) next(gate).getEvent()).payload);
    expectData(gate, 1, 100);
    assertArrayEquals(
        TestBuffers.contents(4, 200_000), ((TestBuffers.LargeEvent) next(gate).getEvent()).payload);
  }

  @Test
  void emptyBuffersTakeACreditEachAndGiveItBack() throws Exception {
    start();
    ScriptedView view = partitions.add(partition);
    SingleInputGate gate = gate(2);
    for (int i = 0; i < 40; i++) {
      view.add(TestBuffers.data(i, 0));
    }
    view.add(TestBuffers.data(99, 50));
    expectData(gate, 99, 50);
    assertEquals(41, view.taken());
  }

  @Test
  void buffersOfBuffersArriveOneByOne() throws Exception {
    start();
    ScriptedView view = partitions.add(partition);
    SingleInputGate gate = gate(2);
    for (int i = 0; i < 20; i++) {
      Buffer whole =
          TestBuffers.filled(TestBuffers.data(i, 100 + i), TestBuffers.data(i + 100, 1), TestBuffers.data(i + 200, 30_000));
      assumeTrue(whole != null, "this Flink has no FullyFilledBuffer");
      view.add(whole, TestBuffers.data(i + 300, 10));
    }
    for (int i = 0; i < 20; i++) {
      expectData(gate, i, 100 + i);
      expectData(gate, i + 100, 1);
      expectData(gate, i + 200, 30_000);
      expectData(gate, i + 300, 10);
    }
  }

  @ParameterizedTest
  @CsvSource({"64", "3"})
  void aBufferOfManyBuffersIsGivenBackOnce(int megabytes) throws Exception {
    Configuration configuration = new Configuration();
    configuration.set(FaroOptions.MEMORY_LIMIT, MemorySize.ofMebiBytes(megabytes)); // with 3 it travels in pieces
    start(configuration);
    ScriptedView view = partitions.add(partition);
    SingleInputGate gate = gate(2);
    for (int round = 0; round < 20; round++) {
      // So Flink reads a partition from its file: slices of one buffer, each in a composite.
      Buffer file = TestBuffers.data(round, 40 * 700);
      Buffer[] parts = new Buffer[40];
      for (int i = 0; i < parts.length; i++) {
        parts[i] = TestBuffers.composite(file.retainBuffer().readOnlySlice(i * 700, 700));
      }
      file.recycleBuffer();
      Buffer whole = TestBuffers.filled(parts);
      assumeTrue(whole != null, "this Flink has no FullyFilledBuffer");
      view.add(whole);
      for (int i = 0; i < parts.length; i++) {
        assertArrayEquals(
            Arrays.copyOfRange(TestBuffers.contents(round, 40 * 700), i * 700, (i + 1) * 700),
            TestBuffers.bytes(next(gate).getBuffer()));
      }
      while (!file.isRecycled()) {
        Thread.onSpinWait(); // the producer gives it back behind the copy
      }
    }
  }

  @ParameterizedTest
  @CsvSource({"64", "3"})
  void regionsOfFilesArrive(int megabytes, @TempDir Path folder) throws Exception {
    Configuration configuration = new Configuration();
    configuration.set(FaroOptions.MEMORY_LIMIT, MemorySize.ofMebiBytes(megabytes));
    start(configuration);
    ScriptedView view = partitions.add(partition);
    SingleInputGate gate = gate(2);
    try (FileChannel file =
        FileChannel.open(
            folder.resolve("partition"), StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      for (int i = 0; i < 50; i++) {
        view.add(TestBuffers.region(file, i, 32_768 - i), TestBuffers.data(i + 100, 20));
      }
      for (int i = 0; i < 50; i++) {
        expectData(gate, i, 32_768 - i);
        expectData(gate, i + 100, 20);
      }
    }
  }

  @ParameterizedTest
  @CsvSource({"64", "3"})
  void aFileThatCannotBeReadFailsItsConsumerOnly(int megabytes, @TempDir Path folder) throws Exception {
    Configuration configuration = new Configuration();
    configuration.set(FaroOptions.MEMORY_LIMIT, MemorySize.ofMebiBytes(megabytes));
    start(configuration);
    ScriptedView view = partitions.add(partition);
    ResultPartitionID other = new ResultPartitionID();
    ScriptedView healthy = partitions.add(other);
    try (FileChannel file =
        FileChannel.open(
            folder.resolve("partition"), StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      view.add(TestBuffers.region(file, 1, 32_768));
      file.truncate(20_000);
      SingleInputGate gate = gate(2);
      IOException thrown = assertThrows(IOException.class, () -> next(gate));
      assertTrue(ExceptionUtils.findThrowable(thrown, RemoteTransportException.class).isPresent(), thrown.toString());
    }
    SingleInputGate gate = consumer.gate(producer.connection(), other, 2);
    healthy.add(TestBuffers.data(5, 500));
    expectData(gate, 5, 500);
  }

  @Test
  void whatTheConsumerSaysReachesTheSubpartition() throws Exception {
    start();
    ScriptedView view = partitions.add(partition);
    SingleInputGate gate = gate(2);
    view.add(TestBuffers.data(1, 10));
    expectData(gate, 1, 10);
    RemoteInputChannel channel = (RemoteInputChannel) gate.getChannel(0);
    channel.notifyRequiredSegmentId(0, 5);
    channel.acknowledgeAllRecordsProcessed();
    channel.resumeConsumption();
    consumer.connections.createPartitionRequestClient(producer.connection()).notifyNewBufferSize(channel, 1234);
    assertEquals(List.of("segment 0 5", "acknowledged", "resumed", "size 1234"), view.calls(4));
  }

  @Test
  void taskEventsReachTheProducer() throws Exception {
    start();
    partitions.add(partition);
    SingleInputGate gate = gate(2);
    gate.sendTaskEvent(new TestBuffers.NumberedEvent(17));
    assertEquals(17, ((TestBuffers.NumberedEvent) published.take()).number);
  }

  @Test
  void aTaskEventWithoutReceiverIsAnErrorOfItsChannel() throws Exception {
    start();
    receivesEvents = false;
    partitions.add(partition);
    SingleInputGate gate = gate(2);
    gate.sendTaskEvent(new TestBuffers.NumberedEvent(1));
    IOException thrown = assertThrows(IOException.class, () -> next(gate));
    assertTrue(ExceptionUtils.stringifyException(thrown).contains("Task event receiver not found"), thrown.toString());
  }

  @Test
  void anErrorOfTheProducerWithoutReceiverFailsAllChannels() throws Exception {
    start();
    partitions.add(partition);
    ResultPartitionID other = new ResultPartitionID();
    ScriptedView view = partitions.add(other);
    SingleInputGate gate = gate(2);
    SingleInputGate sibling = consumer.gate(producer.connection(), other, 2);
    gate.sendTaskEvent(new TestBuffers.NumberedEvent(-1));
    for (SingleInputGate failed : List.of(gate, sibling)) {
      IOException thrown = assertThrows(IOException.class, () -> next(failed));
      String text = ExceptionUtils.stringifyException(thrown);
      assertTrue(text.contains("Fatal error at remote task manager") && text.contains("a negative event"), text);
    }
    view.awaitRelease();
    // The next one gets another link.
    ResultPartitionID third = new ResultPartitionID();
    partitions.add(third).add(TestBuffers.data(1, 10));
    expectData(consumer.gate(producer.connection(), third, 2), 1, 10);
  }

  @Test
  void anErrorOfASubpartitionFailsItsConsumerOnly() throws Exception {
    start();
    ScriptedView view = partitions.add(partition);
    ResultPartitionID other = new ResultPartitionID();
    ScriptedView healthy = partitions.add(other);
    SingleInputGate gate = gate(2);
    SingleInputGate sibling = consumer.gate(producer.connection(), other, 2);
    view.add(TestBuffers.data(1, 10));
    expectData(gate, 1, 10);
    view.fail(new IllegalArgumentException("the disk is full"));
    IOException thrown = assertThrows(IOException.class, () -> next(gate));
    assertTrue(ExceptionUtils.findThrowable(thrown, IllegalArgumentException.class).isPresent(), thrown.toString());
    healthy.add(TestBuffers.data(2, 10));
    expectData(sibling, 2, 10);
  }

  @Test
  void aPartitionThatIsNotFoundIsAskedForAtTheJobManager() throws Exception {
    ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor();
    ResultPartitionManager manager = new ResultPartitionManager(50, new ScheduledExecutorServiceAdapter(timer));
    try {
      consumer = new TestTaskManager("consumer", partitions, (to, event) -> false, new Configuration());
      producer = new TestTaskManager("producer", manager, (to, event) -> false, new Configuration());
      CountDownLatch asked = new CountDownLatch(1);
      consumer.gate(
          producer.connection(), partition, 2, (result, wanted, handler) -> asked.countDown());
      asked.await();
      assertTrue(manager.getListenerManagers().isEmpty());
    } finally {
      timer.shutdownNow();
      manager.shutdown();
    }
  }

  @Test
  void aRequestThatWasCancelledNoLongerWaitsForItsPartition() throws Exception {
    ResultPartitionID later = new ResultPartitionID();
    CountDownLatch requested = new CountDownLatch(1);
    ResultPartitionManager manager =
        new ResultPartitionManager(0, null) {
          @Override
          public Optional<ResultSubpartitionView> createSubpartitionViewOrRegisterListener(
              ResultPartitionID wanted,
              ResultSubpartitionIndexSet subpartitions,
              BufferAvailabilityListener listener,
              PartitionRequestListener requestListener)
              throws IOException {
            Optional<ResultSubpartitionView> found =
                super.createSubpartitionViewOrRegisterListener(wanted, subpartitions, listener, requestListener);
            if (wanted.equals(later)) {
              requested.countDown();
            }
            return found;
          }
        };
    consumer = new TestTaskManager("consumer", partitions, (to, event) -> false, new Configuration());
    producer = new TestTaskManager("producer", manager, (to, event) -> false, new Configuration());
    SingleInputGate gate = consumer.gate(producer.connection(), partition, 2);
    gate.close();
    // A later request of the same link comes behind the cancellation.
    SingleInputGate other = consumer.gate(producer.connection(), later, 2);
    requested.await();
    assertEquals(Set.of(later), manager.getListenerManagers().keySet());
    other.close();
    manager.shutdown();
  }

  @Test
  void aRequestThatTheProviderRefusesFailsItsChannelOnly() throws Exception {
    start();
    ResultPartitionID other = new ResultPartitionID();
    ScriptedView view = partitions.add(other);
    SingleInputGate sibling = consumer.gate(producer.connection(), other, 2);
    CountDownLatch asked = new CountDownLatch(1);
    consumer.gate(
        producer.connection(), partition, 2, (result, wanted, handler) -> asked.countDown());
    asked.await(); // a PartitionNotFoundException
    view.add(TestBuffers.data(1, 10));
    expectData(sibling, 1, 10);
  }

  @Test
  void aGateThatIsClosedWhileDataIsUnderWayReleasesItsSubpartition() throws Exception {
    start();
    for (int round = 0; round < 30; round++) {
      ResultPartitionID id = new ResultPartitionID();
      ScriptedView view = partitions.add(id);
      SingleInputGate gate = consumer.gate(producer.connection(), id, 2);
      for (int i = 0; i < 30; i++) {
        view.add(TestBuffers.data(i, TestTaskManager.SEGMENT_BYTES));
      }
      for (int i = 0; i < round % 5; i++) {
        expectData(gate, i, TestTaskManager.SEGMENT_BYTES);
      }
      gate.close();
      view.awaitRelease();
    }
    assertEquals(1, consumer.connections.getNumberOfActiveConnections());
  }

  @Test
  void aLinkIsUsedAgainWhenNobodyUsesIt() throws Exception {
    start();
    for (int i = 0; i < 3; i++) {
      ResultPartitionID id = new ResultPartitionID();
      partitions.add(id).add(TestBuffers.data(i, 10));
      SingleInputGate gate = consumer.gate(producer.connection(), id, 2);
      expectData(gate, i, 10);
      gate.close();
      partitions.add(id).awaitRelease();
      assertEquals(1, consumer.connections.getNumberOfActiveConnections());
    }
    assertEquals(1, consumer.connections.metrics().channelsOpened());
  }

  @Test
  void withoutReuseALinkEndsWithItsLastChannel() throws Exception {
    Configuration configuration = new Configuration();
    configuration.setString("taskmanager.network.tcp-connection.enable-reuse-across-jobs", "false");
    start(configuration);
    for (int i = 0; i < 3; i++) {
      ResultPartitionID id = new ResultPartitionID();
      partitions.add(id).add(TestBuffers.data(i, 10));
      SingleInputGate gate = consumer.gate(producer.connection(), id, 2);
      expectData(gate, i, 10);
      gate.close();
      partitions.add(id).awaitRelease();
      assertEquals(0, consumer.connections.getNumberOfActiveConnections());
    }
    assertEquals(3, consumer.connections.metrics().channelsOpened());
  }

  @Test
  void aProducerThatGoesFailsItsConsumers() throws Exception {
    start();
    ScriptedView view = partitions.add(partition);
    SingleInputGate gate = gate(2);
    view.add(TestBuffers.data(1, 10));
    expectData(gate, 1, 10);
    producer.connections.shutdown();
    IOException thrown = assertThrows(IOException.class, () -> next(gate));
    String text = ExceptionUtils.stringifyException(thrown);
    assertTrue(text.contains("might indicate that the remote task manager was lost"), text);
    view.awaitRelease();
  }

  @Test
  void aConsumerThatGoesReleasesWhatItHasRead() throws Exception {
    start();
    ScriptedView view = partitions.add(partition);
    SingleInputGate gate = gate(2);
    for (int i = 0; i < 100; i++) {
      view.add(TestBuffers.data(i, TestTaskManager.SEGMENT_BYTES));
    }
    expectData(gate, 0, TestTaskManager.SEGMENT_BYTES);
    consumer.connections.shutdown();
    view.awaitRelease();
  }

  @Test
  void aCauseThatCannotBeSerialisedIsToldInWords() {
    class Unserialisable extends Exception {
      private static final long serialVersionUID = 1L;

      @SuppressWarnings("unused")
      private final Object field = new Object();
    }
    Throwable told = Errors.error(Errors.of(new Unserialisable()));
    assertTrue(told.toString().contains("Unserialisable"), told.toString());
    assertInstanceOf(
        PartitionNotFoundException.class, Errors.error(Errors.of(new PartitionNotFoundException(partition))));
    assertNotEquals(null, Errors.error(new byte[3]));
  }
}
