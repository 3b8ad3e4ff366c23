package io.faro.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.TimeUnit;
import org.apache.flink.api.common.JobExecutionResult;
import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.TaskManagerOptions;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Jobs on two TaskManagers of a MiniCluster give the right sum, and their exchanges go over Faro. */
@Timeout(value = 120, unit = TimeUnit.SECONDS)
@SuppressWarnings({"deprecation", "try"}) // getJobGraph; MiniCluster.close
class MiniClusterTest {
  private static final long RECORDS = 300_000;
  private static final long SUM = RECORDS * (RECORDS + 1) / 2;

  /** Adds up what it sees. */
  private static final class Sum extends RichMapFunction<Long, Long> {
    private static final long serialVersionUID = 1L;

    @Override
    public Long map(Long value) {
      getRuntimeContext().getLongCounter("sum").add(value);
      return value;
    }
  }

  private static Configuration configuration() {
    Configuration configuration = new Configuration();
    configuration.setString("shuffle-service-factory.class", FaroShuffleServiceFactory.class.getName());
    configuration.setString("jobmanager.scheduler", "Default");
    configuration.setString("rest.port", "0");
    configuration.set(TaskManagerOptions.NETWORK_MEMORY_MIN, MemorySize.ofMebiBytes(32));
    configuration.set(TaskManagerOptions.NETWORK_MEMORY_MAX, MemorySize.ofMebiBytes(32));
    configuration.set(TaskManagerOptions.MANAGED_MEMORY_SIZE, MemorySize.ofMebiBytes(64));
    return configuration;
  }

  private static void runs(Configuration configuration, RuntimeExecutionMode mode) throws Exception {
    long requested = ExchangeTotals.subpartitionsRequested();
    long bytes = ExchangeTotals.bytesReceived();
    MiniClusterConfiguration cluster =
        new MiniClusterConfiguration.Builder()
            .setConfiguration(configuration)
            .setNumTaskManagers(2)
            .setNumSlotsPerTaskManager(2)
            .build();
    try (MiniCluster miniCluster = new MiniCluster(cluster)) {
      miniCluster.start();
      StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment(configuration);
      env.setParallelism(4);
      env.setRuntimeMode(mode);
      env.fromSequence(1, RECORDS)
          .map(value -> value)
          .returns(Long.class)
          .keyBy(value -> value % 1000)
          .map(new Sum())
          .sinkTo(new DiscardingSink<>());
      JobExecutionResult result = miniCluster.executeJobBlocking(env.getStreamGraph().getJobGraph());
      assertEquals(SUM, result.<Long>getAccumulatorResult("sum"));
    }
    assertTrue(ExchangeTotals.subpartitionsRequested() - requested >= 8, "half of 16 channels are remote");
    long least = mode == RuntimeExecutionMode.BATCH ? RECORDS / 10 : 4 * RECORDS; // blocking exchanges are compressed
    assertTrue(ExchangeTotals.bytesReceived() - bytes >= least, "half of the records are remote");
  }

  @Test
  void aStreamingJobGivesTheRightSum() throws Exception {
    runs(configuration(), RuntimeExecutionMode.STREAMING);
  }

  @Test
  void theSameOverTcp() throws Exception {
    Configuration configuration = configuration();
    configuration.set(FaroOptions.TRANSPORT, "tcp");
    runs(configuration, RuntimeExecutionMode.STREAMING);
  }

  @Test
  void theSameWithRingsThatAreSmallerThanBuffers() throws Exception {
    Configuration configuration = configuration();
    configuration.set(FaroOptions.MEMORY_LIMIT, MemorySize.ofMebiBytes(3));
    runs(configuration, RuntimeExecutionMode.STREAMING);
  }

  @Test
  void aJobWithUnalignedCheckpointsGivesTheRightSum() throws Exception {
    Configuration configuration = configuration();
    configuration.setString("execution.checkpointing.interval", "20 ms");
    configuration.setString("execution.checkpointing.unaligned.enabled", "true");
    configuration.setString("taskmanager.network.memory.buffer-debloat.enabled", "true");
    runs(configuration, RuntimeExecutionMode.STREAMING);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "ALL_EXCHANGES_PIPELINED",
        "ALL_EXCHANGES_BLOCKING",
        "ALL_EXCHANGES_HYBRID_FULL",
        "ALL_EXCHANGES_HYBRID_SELECTIVE"
      })
  void aBatchJobGivesTheRightSum(String exchanges) throws Exception {
    Configuration configuration = configuration();
    configuration.setString("execution.batch-shuffle-mode", exchanges);
    runs(configuration, RuntimeExecutionMode.BATCH);
  }

  @Test
  void aBatchJobThatReadsRegionsOfFilesGivesTheRightSum() throws Exception {
    Configuration configuration = configuration();
    configuration.setString("execution.batch-shuffle-mode", "ALL_EXCHANGES_BLOCKING");
    configuration.setString("taskmanager.network.sort-shuffle.min-parallelism", "100000"); // hash instead of sort-merge, in Flink 1.20
    configuration.setString("taskmanager.network.compression.codec", "NONE");
    configuration.setString("taskmanager.network.blocking-shuffle.compression.enabled", "false");
    runs(configuration, RuntimeExecutionMode.BATCH);
  }
}
