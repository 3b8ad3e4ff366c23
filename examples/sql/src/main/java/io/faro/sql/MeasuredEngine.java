package io.faro.sql;

import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A node whose queries are measured. Plans are made once, so that only running is. Threads: one. */
final class MeasuredEngine {
  private final Engine engine;
  private final CpuTime cpu = new CpuTime();
  private final ShuffleShare share = new ShuffleShare();
  private final Map<String, Plan> plans = new HashMap<>(); // by SQL

  /**
   * What a query took of one process, or of several.
   *
   * @param cpuNanos of all threads
   * @param shuffleNanos of that, in exchanges; of a query that was sampled only
   * @param workNanos of workers and of Faro's own threads; of a query that was sampled only
   */
  record Spent(long cpuNanos, long shuffleNanos, long workNanos) {
    Spent plus(Spent other) {
      return new Spent(
          cpuNanos + other.cpuNanos, shuffleNanos + other.shuffleNanos, workNanos + other.workNanos);
    }

    /** In one line; {@link #parse} reads it. */
    String encoded() {
      return cpuNanos + " " + shuffleNanos + " " + workNanos;
    }

    static Spent parse(String line) {
      String[] words = line.split(" ");
      return new Spent(Long.parseLong(words[0]), Long.parseLong(words[1]), Long.parseLong(words[2]));
    }
  }

  /** The rows of the result, on node 0; what the query took of this process. */
  record Outcome(List<Object[]> rows, Spent spent) {}

  MeasuredEngine(Engine engine) {
    this.engine = engine;
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
      return new Outcome(rows, new Spent(cpu.all() - cpuBefore, 0, 0));
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
    long faro = cpu.faro() - faroBefore;
    Spent spent = new Spent(cpu.all() - cpuBefore, workers.shuffleNanos() + faro, workers.allNanos() + faro);
    return new Outcome(rows, spent);
  }
}
