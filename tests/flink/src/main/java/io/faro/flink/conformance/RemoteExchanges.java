package io.faro.flink.conformance;

import java.io.IOException;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.atomic.LongAdder;

/**
 * What this JVM has requested of other TaskManagers, in a file that it maps: so the numbers are there however the JVM ends, but
 * for the last tenth of a second. The file is named after the process, and has four longs in the machine's order:
 *
 * <pre>
 *  0  subpartitions requested over Netty
 *  1  subpartitions requested over Faro
 *  2  buffers and events received over Faro
 *  3  bytes in these
 * </pre>
 *
 * <p>Threads: any.
 */
public final class RemoteExchanges {
  private static final String TOTALS = "io.faro.flink.ExchangeTotals";
  private static final int COUNT = 4;
  private static final long INTERVAL_MS = 100;
  private static final LongAdder OVER_NETTY = new LongAdder();

  private static LongBuffer counts;

  private RemoteExchanges() {}

  static void open(Path folder, boolean overFaro) throws IOException {
    Files.createDirectories(folder);
    Path file = folder.resolve(String.valueOf(ProcessHandle.current().pid()));
    try (FileChannel channel =
        FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      counts =
          channel
              .map(FileChannel.MapMode.READ_WRITE, 0, COUNT * Long.BYTES)
              .order(ByteOrder.nativeOrder())
              .asLongBuffer();
    }
    Thread writer = new Thread(() -> writeAgainAndAgain(overFaro), "counts of remote exchanges");
    writer.setDaemon(true);
    writer.start();
    Runtime.getRuntime().addShutdownHook(new Thread(() -> write(overFaro)));
  }

  /** Called by the advice. */
  public static void requestedOverNetty() {
    OVER_NETTY.increment();
  }

  private static void writeAgainAndAgain(boolean overFaro) {
    while (true) {
      write(overFaro);
      try {
        Thread.sleep(INTERVAL_MS);
      } catch (InterruptedException end) {
        return;
      }
    }
  }

  private static synchronized void write(boolean overFaro) {
    counts.put(0, OVER_NETTY.sum());
    if (!overFaro) {
      return;
    }
    try {
      Class<?> totals = Class.forName(TOTALS);
      counts.put(1, (long) totals.getMethod("subpartitionsRequested").invoke(null));
      counts.put(2, (long) totals.getMethod("buffersReceived").invoke(null));
      counts.put(3, (long) totals.getMethod("bytesReceived").invoke(null));
    } catch (ClassNotFoundException notFlink) {
      // A process that a test has started, without Flink in its class path: it has no exchanges.
    } catch (ReflectiveOperationException wrong) {
      throw new IllegalStateException(wrong);
    }
  }
}
