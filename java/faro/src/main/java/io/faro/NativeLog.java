package io.faro;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Passes Faro's log lines to the {@link System.Logger} {@code io.faro}. A daemon thread takes them from a native queue,
 * so that neither the network thread nor a worker ever waits for a logger.
 *
 * <p>{@code FARO_LOG_LEVEL} sets which lines are logged (debug, info, warning, error, off;
 * default: warning). Threads: any.
 */
final class NativeLog {
  // Held from taking lines until they are written, so that drain() waits for lines that another thread has taken.
  private static final ReentrantLock WRITING = new ReentrantLock();
  private static final long DRAIN_LIMIT_MS = 1000;

  /** By the numbers of faro/log.h; a test compares the two. */
  static final Map<Integer, System.Logger.Level> LEVELS =
      Map.of(
          0, System.Logger.Level.DEBUG,
          1, System.Logger.Level.INFO,
          2, System.Logger.Level.WARNING,
          3, System.Logger.Level.ERROR);

  private static boolean started; // guarded by the class

  /** Made with the first line, since it takes long. */
  private static final class LoggerHolder {
    static final System.Logger LOGGER = System.getLogger("io.faro");
  }

  private NativeLog() {}

  /** Starts passing lines on. Idempotent. */
  static synchronized void start() {
    if (!started) {
      started = true;
      redirect();
      Thread thread = new Thread(NativeLog::run, "faro-log");
      thread.setDaemon(true);
      thread.start();
    }
  }

  /**
   * Returns when everything logged before has been written. Waits at most a second for a logger that does not return:
   * it may be waiting for the caller.
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
    LoggerHolder.LOGGER.log(System.Logger.Level.WARNING, line, where);
  }

  private static void run() {
    for (; ; ) {
      awaitLine();
      WRITING.lock();
      writeAll();
    }
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
      LoggerHolder.LOGGER.log(level, line);
    } catch (RuntimeException broken) {
      // A log line that cannot be written must not end this thread.
    }
  }

  /** Log lines go to the queue instead of stderr. */
  private static native void redirect();

  /** Blocks until the queue has a line. */
  private static native void awaitLine();

  /** The digit of its level, then the line; null if the queue is empty. */
  private static native byte[] take();
}
