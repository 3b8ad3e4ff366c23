package io.faro.sql;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;

/**
 * Which part of the workers' CPU time is spent in exchanges: a thread looks at their stacks each millisecond, and
 * what a worker has taken since the last look counts for the place where it is now. The place is that of the
 * innermost call of Faro, of the engine or of the plan: whatever of the JDK these use counts as theirs.
 *
 * <p>Looking costs time itself: not to be done while time is measured. Threads: {@link #start} and {@link #stop} of
 * one.
 */
final class ShuffleShare {
  private static final long PERIOD_NANOS = 1_000_000;
  private static final int DEPTH = 60; // calls; plans are deep where they read their inputs

  /** CPU time in ns: of exchanges, and of all that workers did. */
  record Times(long shuffleNanos, long allNanos) {
    Times plus(Times other) {
      return new Times(shuffleNanos + other.shuffleNanos, allNanos + other.allNanos);
    }
  }

  private final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
  private final Map<Long, Long> taken = new HashMap<>(); // by thread, in ns, at the last look
  private long shuffleNanos;
  private long allNanos;
  private Thread sampler; // null: none
  private volatile boolean isStopping;

  /** Begins to look at these threads. */
  void start(List<Thread> workers) {
    long[] ids = workers.stream().mapToLong(Thread::getId).toArray();
    for (long id : ids) {
      taken.put(id, threads.getThreadCpuTime(id));
    }
    shuffleNanos = 0;
    allNanos = 0;
    isStopping = false;
    sampler = new Thread(() -> run(ids), "sampler");
    sampler.setDaemon(true);
    sampler.start();
  }

  /** Ends it; what it has seen since {@link #start}. */
  Times stop() {
    isStopping = true;
    try {
      sampler.join();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted", e);
    }
    return new Times(shuffleNanos, allNanos);
  }

  private void run(long[] ids) {
    while (!isStopping) {
      LockSupport.parkNanos(PERIOD_NANOS);
      ThreadInfo[] stacks = threads.getThreadInfo(ids, DEPTH);
      for (int i = 0; i < ids.length; i++) {
        long now = threads.getThreadCpuTime(ids[i]);
        long spent = now - taken.put(ids[i], now);
        if (spent > 0 && stacks[i] != null) {
          allNanos += spent;
          shuffleNanos += isShuffle(stacks[i].getStackTrace()) ? spent : 0;
        }
      }
    }
  }

  /** Whether the innermost call that is not the JDK's is one of an exchange. */
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
      return name.startsWith("org.jctools."); // Faro's queues
    }
    if (!name.startsWith("io.faro.sql.") || name.startsWith("io.faro.sql.sockets.")) {
      return true;
    }
    String own = name.substring("io.faro.sql.".length());
    return own.equals("ExchangedRows")
        || own.equals("Exchange") // who gets a row
        || own.equals("RowTypes") // its hash
        || own.startsWith("FaroCarrier");
  }
}
