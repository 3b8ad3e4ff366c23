package io.faro.flink.benchmark;

import java.util.concurrent.CompletableFuture;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.runtime.io.benchmark.StreamNetworkThroughputBenchmark;

/** One writer sends as fast as it can, to each channel in turn. */
final class Throughput extends Benchmark {
  private static final int WRITERS = 1;
  private static final int DEFAULT = -1; // buffers
  private static final long TIMEOUT_MS = 60_000;

  private final StreamNetworkThroughputBenchmark benchmark = new StreamNetworkThroughputBenchmark();
  private int channels;

  @Override
  void setUp(int channels, int flushMs, boolean local, Configuration configuration) throws Exception {
    this.channels = channels;
    benchmark.setUp(WRITERS, channels, flushMs, false, local, DEFAULT, DEFAULT, configuration);
    findCounter(benchmark);
  }

  @Override
  void awaitReady() throws Exception {
    for (Object writer : (Object[]) field(benchmark, "writerThreads")) {
      while (isSending(writer)) {
        Thread.sleep(1);
      }
    }
  }

  private static boolean isSending(Object writer) throws ReflectiveOperationException {
    synchronized (writer) {
      return ((CompletableFuture<?>) field(writer, "recordsToSend")).isDone();
    }
  }

  @Override
  long round(long records) throws Exception {
    benchmark.executeBenchmark(records, TIMEOUT_MS);
    return records - 1 + channels; // the last one goes to all of them
  }
}
