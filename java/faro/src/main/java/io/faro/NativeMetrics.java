package io.faro;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Stream;

/** Reads the snapshots of jni/metrics.cc. */
final class NativeMetrics {
  private final long[] values;
  private final String[] transports;
  private int next;

  private NativeMetrics(long[] values, String transports) {
    this.values = values;
    this.transports = transports.split("\n");
  }

  /** The snapshot of the session with this handle; throws {@link Code#SESSION_CLOSED}. */
  static SessionMetrics of(long session) {
    long[] values = snapshot(session);
    byte[] transports = transports(session);
    if (values == null || transports == null) {
      throw new FaroException(Code.SESSION_CLOSED, "the session was closed");
    }
    return new NativeMetrics(values, new String(transports, UTF_8)).session();
  }

  private SessionMetrics session() {
    int workers = index();
    int links = index();
    int lanes = index();
    // The session's own counters come first here, but are last in the record.
    long overflowMemory = value();
    long overflowMemoryPeak = value();
    long overflowFile = value();
    long overflowFilePeak = value();
    long running = value();
    long failed = value();
    return new SessionMetrics(
        list(workers, this::worker),
        list(links, this::link),
        list(lanes, this::lane),
        overflowMemory,
        overflowMemoryPeak,
        overflowFile,
        overflowFilePeak,
        running,
        failed);
  }

  private WorkerMetrics worker() {
    return new WorkerMetrics(
        index(), value(), value(), value(), value(), value(), value(), value(), value(), value(),
        value(), value(), value(), value());
  }

  private LinkMetrics link() {
    int node = index();
    return new LinkMetrics(
        node, transports[node], value() == 1, value(), value(), value(), value(), value(), value(),
        value(), value(), value(), value(), value(), value(), value(), value(), value());
  }

  private LaneMetrics lane() {
    return new LaneMetrics(
        index(), index(), value(), value(), value(), value(), value(), value(), value(), value());
  }

  private static <T> List<T> list(int count, Supplier<T> one) {
    return Stream.generate(one).limit(count).toList();
  }

  private int index() {
    return (int) value();
  }

  private long value() {
    return values[next++];
  }

  /** One line per counter: what it belongs to, tab, its name; for the test that compares. */
  static native byte[] names();

  private static native long[] snapshot(long session);

  private static native byte[] transports(long session);
}
