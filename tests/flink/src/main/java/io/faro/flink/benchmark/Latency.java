package io.faro.flink.benchmark;

import java.util.Arrays;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.runtime.io.benchmark.StreamNetworkPointToPointBenchmark;

/** One record at a time, from being written until the writer knows that it was read. */
final class Latency extends Benchmark {
  private final StreamNetworkPointToPointBenchmark benchmark = new StreamNetworkPointToPointBenchmark();
  private long[] times = {};

  @Override
  void setUp(int channels, int flushMs, boolean local, Configuration configuration) throws Exception {
    if (channels != 1 || local) {
      throw new IllegalArgumentException("Flink's benchmark has one channel, to another TaskManager.");
    }
    benchmark.setUp(flushMs, configuration);
    findCounter(benchmark);
  }

  @Override
  void awaitReady() {
    // The receiver is ready before it says that it has the record.
  }

  @Override
  long round(long records) throws Exception {
    times = new long[Math.toIntExact(records)];
    for (int i = 0; i < times.length; i++) {
      long start = System.nanoTime();
      benchmark.executeBenchmark(1, true);
      times[i] = System.nanoTime() - start;
    }
    return records;
  }

  @Override
  String more() {
    Arrays.sort(times);
    return ", \"p50_us\": " + at(0.5) + ", \"p99_us\": " + at(0.99);
  }

  private double at(double part) {
    return times[(int) (part * (times.length - 1))] / 1e3;
  }
}
