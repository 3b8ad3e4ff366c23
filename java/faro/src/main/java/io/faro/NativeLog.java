package io.faro;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;

/**
 * Passes Faro's log lines to the {@link System.Logger} {@code io.faro}. A daemon thread takes them
 * from a native queue, so that neither the network thread nor a worker ever waits for a logger. It
 * runs as long as somebody uses Faro: a session or an endpoint that is open, or a call. After that
 * it ends, so that the class loader of Faro can be collected.
 *
 * <p>{@code FARO_LOG_LEVEL} sets which lines are logged (debug, info, warning, error, off;
 * default: warning). Threads: any.
 */
final class NativeLog {
  // Held from taking lines until they are written, so that drain() waits for lines that another
  // thread has taken.
  private static final ReentrantLock WRITING = new ReentrantLock();
  private static final long DRAIN_LIMIT_MS = 1000;

  /** By the numbers of faro/log.h; a test compares the two. */
  static final Map<Integer, System.Logger.Level> LEVELS =
      Map.of(
          0, System.Logger.Level.DEBUG,
          1, System.Logger.Level.INFO,
          2, System.Logger.Level.WARNING,
          3, System.Logger.Level.ERROR);

  private static boolean redirected; // all three guarded by the class
  private static boolean running; // the thread
  private static int users;

  /** Made with the first line, since it takes long. */
  private static final class LogHolder {
    static final LogOutput OUTPUT = LogOutput.find();
  }

  private NativeLog() {}

  /** Somebody uses Faro: lines are passed on until {@link #leave}, which has to follow once. */
  static synchronized void enter() {
    if (!redirected) {
      redirected = true;
      redirect();
    }
    users++;
    if (!running) {
      running = true;
      DaemonThread.start("faro-log", NativeLog::run);
    }
  }

  /**
   * Ends what {@link #enter} has begun. What was logged before has been written, as {@link #drain}
   * says.
   */
  static void leave() {
    drain();
    synchronized (NativeLog.class) {
      if (--users == 0) {
        endWait();
      }
    }
  }

  /**
   * Enters for what is opened, which leaves when it is closed. If it is not opened, leaves here.
   */
  static <T> T opening(Supplier<T> open) {
    enter();
    T opened = null;
    try {
      opened = open.get();
      return opened;
    } finally {
      if (opened == null) {
        leave();
      }
    }
  }

  /**
   * Returns when everything logged before has been written. Waits at most a second for a logger
   * that does not return: it may be waiting for the caller.
   */
  static void drain() {
    try {
      if (WRITING.tryLock(DRAIN_LIMIT_MS, TimeUnit.MILLISECONDS)) {
        writeAll();
      }
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /** A warning from the Java side. */
  static void warn(String line, Throwable where) {
    LogHolder.OUTPUT.log(System.Logger.Level.WARNING, line, where);
  }

  private static void run() {
    do {
      awaitLine();
      WRITING.lock();
      writeAll();
    } while (isUsed());
  }

  // False: the thread ends.
  private static synchronized boolean isUsed() {
    running = users > 0;
    return running;
  }

  // Releases the lock.
  private static void writeAll() {
    try {
      for (byte[] line; (line = take()) != null; ) {
        write(LEVELS.get(line[0] - '0'), new String(line, 1, line.length - 1, UTF_8));
      }
    } finally {
      WRITING.unlock();
    }
  }

  private static void write(System.Logger.Level level, String line) {
    try {
      LogHolder.OUTPUT.log(level, line, null);
    } catch (RuntimeException broken) {
      // A log line that cannot be written must not end this thread.
    }
  }

  /** Log lines go to the queue instead of stderr. */
  private static native void redirect();

  /** Blocks until the queue has a line, or {@link #endWait} was called since. */
  private static native void awaitLine();

  /** Ends the wait under way, or else the next one. */
  private static native void endWait();

  /** The digit of its level, then the line; null if the queue is empty. */
  private static native byte[] take();
}
