package io.faro.sql.bench;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;

/**
 * Which part of the workers' CPU time is spent in exchanges: a thread looks at their stacks each millisecond, and
 * what a worker has taken since the last look counts for the place where it is now, if it runs: of one that waits
 * nothing tells where it was before. (With many more workers than processors the exchanges' part looks larger than
 * it is: one that was just woken runs, by the kernel's books, where it has waited.) The place is that of the innermost
 * call of Faro, of the engine or of the plan: whatever of the JDK these use counts as theirs. Stacks are seen at
 * safepoints only: the JVM's flight recorder, which sees any place but no system call, found 0.20 to 0.21 for two queries
 * over Faro where this says 0.21 and 0.28.
 *
 * <p>Looking costs time itself: not to be done while time is measured. Threads: {@link #start} and {@link #stop} of
 * one.
 */
final class ShuffleShare {
  private static final Path TASKS = Path.of("/proc/self/task");
  private static final long PERIOD_NANOS = 1_000_000;
  private static final int DEPTH = 60; // calls; plans are deep where they read their inputs

  /**
   * CPU time of workers in ns.
   *
   * @param shuffleNanos of what was seen, in exchanges
   * @param seenNanos of workers that ran when they were looked at
   * @param allNanos all of it
   */
  record Times(long shuffleNanos, long seenNanos, long allNanos) {
    Times plus(Times other) {
      return new Times(
          shuffleNanos + other.shuffleNanos, seenNanos + other.seenNanos, allNanos + other.allNanos);
    }
  }

  /** Where nobody looked. */
  static final Times NONE = new Times(0, 0, 0);

  private final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
  private final Map<Long, Long> taken = new HashMap<>(); // by thread, in ns, at the last look
  private long allNanos;
  private long seenNanos; // of that: of workers that ran when they were looked at
  private long shuffleNanos; // of that: in exchanges
  private Thread sampler; // null: none
  private volatile boolean isStopping;
  private RuntimeException failure; // the sampler's, before it ended; null: none

  /** Begins to look at these threads. */
  void start(List<Thread> workers) {
    long[] ids = workers.stream().mapToLong(Thread::getId).toArray();
    for (long id : ids) {
      taken.put(id, threads.getThreadCpuTime(id));
    }
    shuffleNanos = 0;
    seenNanos = 0;
    allNanos = 0;
    isStopping = false;
    failure = null;
    Map<String, Path> byName = tasks();
    Path[] tasks = workers.stream().map(Thread::getName).map(byName::get).toArray(Path[]::new);
    sampler = new Thread(() -> runToTheEnd(ids, tasks), "sampler");
    sampler.setDaemon(true);
    sampler.start();
  }

  /** Ends it; what it has seen since {@link #start}. Throws what it has failed by, if it has. */
  Times stop() {
    isStopping = true;
    try {
      sampler.join();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted", e);
    }
    if (failure != null) {
      throw new IllegalStateException("looking at the workers has failed: " + failure, failure);
    }
    return new Times(shuffleNanos, seenNanos, allNanos);
  }

  private void runToTheEnd(long[] ids, Path[] tasks) {
    try {
      run(ids, tasks);
    } catch (RuntimeException problem) {
      failure = problem;
    }
  }

  private void run(long[] ids, Path[] tasks) {
    while (!isStopping) {
      LockSupport.parkNanos(PERIOD_NANOS);
      for (int i = 0; i < ids.length; i++) {
        long now = threads.getThreadCpuTime(ids[i]);
        if (now < 0) {
          continue; // it has ended
        }
        long spent = now - taken.put(ids[i], now);
        allNanos += spent;
        if (spent == 0 || tasks[i] == null || !runs(tasks[i])) {
          continue;
        }
        ThreadInfo stack = threads.getThreadInfo(ids[i], DEPTH);
        if (stack != null) {
          seenNanos += spent;
          shuffleNanos += isShuffle(stack.getStackTrace()) ? spent : 0;
        }
      }
    }
  }

  /** The kernel's folder of each thread, by its name, of which it has the first 15 characters. */
  private static Map<String, Path> tasks() {
    Map<String, Path> tasks = new HashMap<>();
    try (DirectoryStream<Path> all = Files.newDirectoryStream(TASKS)) {
      for (Path task : all) {
        tasks.put(CpuTime.read(task.resolve("comm")).strip(), task);
      }
    } catch (IOException problem) {
      throw new UncheckedIOException(problem);
    }
    return tasks;
  }

  /** Whether a thread runs, or would if there were a processor for it. */
  private static boolean runs(Path task) {
    String stat = CpuTime.read(task.resolve("stat"));
    return stat.startsWith(" R", stat.lastIndexOf(')') + 1);
  }

  /** Whether the innermost call that is not the JDK's is one of an exchange, or of an aggregation. */
  static boolean isShuffle(StackTraceElement[] stack) {
    for (StackTraceElement call : stack) {
      String name = call.getClassName();
      if (!isOfTheJdk(name)) {
        return isShuffle(name);
      }
    }
    return false;
  }

  private static boolean isOfTheJdk(String name) {
    return name.startsWith("java.") || name.startsWith("jdk.") || name.startsWith("sun.") || name.startsWith("com.sun.");
  }

  private static boolean isShuffle(String name) {
    if (!name.startsWith("io.faro.")) {
      return false;
    }
    if (!name.startsWith("io.faro.sql.") || name.startsWith("io.faro.sql.sockets.")) {
      return true;
    }
    String own = name.substring("io.faro.sql.".length());
    return own.equals("exec.StageRows")
        || own.equals("exec.ExchangedRows")
        || own.equals("exec.GroupedRows")
        || own.equals("plan.Exchange") // who gets a row
        || own.equals("plan.RowTypes") // its hash
        || own.equals("plan.GroupBy") // what is added of a row
        || own.equals("plan.Decimals")
        || own.startsWith("exec.FaroCarrier");
  }
}
