package io.faro.sql.bench;

import io.faro.sql.exec.Engine;
import io.faro.sql.plan.Plan;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;

/** A node whose queries are measured. Plans are made once, so that only running is. Threads: one. */
final class MeasuredEngine {
  private final Engine engine;
  private final boolean isOverFaro;
  private final CpuTime cpu = new CpuTime();
  private final ShuffleShare share = new ShuffleShare();
  private final Map<String, Plan> plans = new HashMap<>(); // by SQL

  /**
   * What a query took of one process, or of several.
   *
   * @param cpuNanos of all threads but compilers
   * @param workers of a query that was sampled only
   * @param faroNanos of Faro's own threads if they carry the rows; of a query that was sampled only
   */
  record Spent(long cpuNanos, ShuffleShare.Times workers, long faroNanos) {
    Spent plus(Spent other) {
      return new Spent(cpuNanos + other.cpuNanos, workers.plus(other.workers), faroNanos + other.faroNanos);
    }

    /**
     * The part of exchanges in the CPU time of workers and of Faro's own threads, if the workers spent there the part
     * that they did in what was seen. Empty if nothing was seen.
     */
    OptionalDouble shuffleShare() {
      if (workers.seenNanos() == 0) {
        return OptionalDouble.empty();
      }
      double ofWorkers = (double) workers.allNanos() * workers.shuffleNanos() / workers.seenNanos();
      return OptionalDouble.of((ofWorkers + faroNanos) / (workers.allNanos() + faroNanos));
    }

    /** In one line; {@link #parse} reads it. */
    String encoded() {
      return cpuNanos + " " + workers.shuffleNanos() + " " + workers.seenNanos() + " " + workers.allNanos() + " " + faroNanos;
    }

    static Spent parse(String line) {
      long[] words = Arrays.stream(line.split(" ")).mapToLong(Long::parseLong).toArray();
      return new Spent(words[0], new ShuffleShare.Times(words[1], words[2], words[3]), words[4]);
    }
  }

  /** The rows of the result, on node 0; what the query took of this process. */
  record Outcome(List<Object[]> rows, Spent spent) {}

  /** {@code isOverFaro}: and not over sockets, beside which Faro's threads carry no rows. */
  MeasuredEngine(Engine engine, boolean isOverFaro) {
    this.engine = engine;
    this.isOverFaro = isOverFaro;
  }

  /** Makes the plan of a query, unless it was made before. */
  Plan plan(String sql) {
    return plans.computeIfAbsent(sql, engine::plan);
  }

  /** Runs a query that was begun on node 0. Throws by what it failed. */
  Outcome run(MeasuredQuery measured) {
    Plan plan = plan(measured.query().sql());
    long cpuBefore = cpu.all();
    if (!measured.isSampled()) {
      List<Object[]> rows = engine.run(measured.query(), plan);
      return new Outcome(rows, new Spent(cpu.all() - cpuBefore, ShuffleShare.NONE, 0));
    }
    long faroBefore = cpu.faro();
    share.start(engine.workerThreads());
    ShuffleShare.Times workers;
    List<Object[]> rows;
    try {
      rows = engine.run(measured.query(), plan);
    } finally {
      workers = share.stop();
    }
    long faro = isOverFaro ? cpu.faro() - faroBefore : 0;
    return new Outcome(rows, new Spent(cpu.all() - cpuBefore, workers, faro));
  }
}
