package io.faro.flink;

import java.util.concurrent.atomic.LongAdder;

/**
 * What all TaskManagers of this process have received over Faro since it began: for tests that are
 * to show that a job's exchanges went over Faro.
 *
 * <p>Threads: any.
 */
public final class ExchangeTotals {
  static final LongAdder REQUESTS = new LongAdder();
  static final LongAdder BUFFERS = new LongAdder();
  static final LongAdder BYTES = new LongAdder();

  private ExchangeTotals() {}

  /** Subpartitions that were requested of other TaskManagers. */
  public static long subpartitionsRequested() {
    return REQUESTS.sum();
  }

  /** Buffers and events that have come from them. */
  public static long buffersReceived() {
    return BUFFERS.sum();
  }

  /** Bytes in these. */
  public static long bytesReceived() {
    return BYTES.sum();
  }
}
