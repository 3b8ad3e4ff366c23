package io.faro.bench;

import io.faro.Partition;

/**
 * The synthetic job of the benchmark, as {@code native/lab/bench/two_stage_job.h}: the same integers,
 * destinations and checksum ({@code native/lab/workload/integer_rows.h}), so that nodes in C++ and Java can carry it together.
 *
 * <pre>
 *   generate n -> shuffle 1 by hash(n) -> n := n*3/2 -> shuffle 2 by hash(n) -> sink
 * </pre>
 *
 * @param processes nodes
 * @param workersPerProcess workers of each
 * @param rowsPerProcess integers that each process generates
 * @param partition where rows go
 */
public record TwoStageJob(int processes, int workersPerProcess, long rowsPerProcess, Partition partition) {
  public int workerCount() {
    return processes * workersPerProcess;
  }

  long rowCount() {
    return processes * rowsPerProcess;
  }

  /** A hop is one row shuffled once. */
  long hopCount() {
    return 2 * rowCount();
  }

  public int processOf(int worker) {
    return worker / workersPerProcess;
  }

  /** The first integer that a worker generates; that of the next worker ends its range. */
  long rangeBegin(int worker) {
    long within = worker % workersPerProcess;
    return processOf(worker) * rowsPerProcess + rowsPerProcess * within / workersPerProcess;
  }

  long rangeEnd(int worker) {
    long within = worker % workersPerProcess + 1;
    return processOf(worker) * rowsPerProcess + rowsPerProcess * within / workersPerProcess;
  }

  /** Between the stages: sends most rows to another worker than before. */
  static long transform(long n) {
    return n * 3 >>> 1;
  }

  /** One row's part of the checksum. */
  static long mix(long n) {
    n *= 0x9e3779b97f4a7c15L;
    return n ^ (n >>> 32);
  }

  /** What all sinks together must have summed up. */
  long expectedChecksum() {
    long sum = 0;
    for (long n = 0; n < rowCount(); n++) {
      sum += mix(transform(n));
    }
    return sum;
  }

  // Loops over arrays, which the JIT vectorises.

  static void generate(long first, long[] to, int count) {
    for (int i = 0; i < count; i++) {
      to[i] = first + i;
    }
  }

  static void transformAll(long[] rows, int count) {
    for (int i = 0; i < count; i++) {
      rows[i] = rows[i] * 3 >>> 1;
    }
  }

  static long sumOfMix(long[] rows, int count) {
    long sum = 0;
    for (int i = 0; i < count; i++) {
      long n = rows[i] * 0x9e3779b97f4a7c15L;
      sum += n ^ (n >>> 32);
    }
    return sum;
  }
}
