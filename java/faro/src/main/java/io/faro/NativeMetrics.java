package io.faro;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Stream;

/** Reads the snapshots of jni/metrics.cc. */
final class NativeMetrics {
  private final long[] values;
  private final String[] texts; // of links or channels
  private int next;

  private NativeMetrics(long[] values, String lines) {
    this.values = values;
    texts = lines.split("\n");
  }

  private static FaroException sessionClosed() {
    return new FaroException(Code.SESSION_CLOSED, "the session was closed");
  }

  /** The snapshot of the session with this handle; throws {@link Code#SESSION_CLOSED}. */
  static SessionMetrics of(long session) {
    long[] values = snapshot(session);
    byte[] transports = transports(session);
    if (values == null || transports == null) {
      throw sessionClosed();
    }
    return new NativeMetrics(values, new String(transports, UTF_8)).session();
  }

  /** Of the shuffles of a query that the session with this handle knows; throws {@link Code#SESSION_CLOSED}. */
  static List<ShuffleMetrics> ofQuery(long session, QueryId query) {
    NativeMetrics read =
        ofShuffles(shuffles(session, query.counter(), query.incarnation(), query.issuer()));
    List<ShuffleMetrics> all = new ArrayList<>();
    while (read.next < read.values.length) {
      all.add(read.shuffle(query));
    }
    return List.copyOf(all);
  }

  /** Of the shuffle with this handle, which may be closed, but not destroyed. */
  static ShuffleMetrics ofShuffle(long shuffle, QueryId query) {
    return ofShuffles(shuffle(shuffle)).shuffle(query);
  }

  /** Of the endpoint with this handle, which may be closed, but not destroyed. */
  static EndpointMetrics ofEndpoint(long endpoint) {
    Object[] told = endpoint(endpoint);
    NativeMetrics read = new NativeMetrics((long[]) told[0], new String((byte[]) told[1], UTF_8));
    FaroException.checked(read.value());
    return read.endpoint();
  }

  /** Throws if the first value is a negative code. */
  private static NativeMetrics ofShuffles(long[] values) {
    NativeMetrics read = new NativeMetrics(values, "");
    FaroException.checked(read.value());
    return read;
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
        node, texts[node], value() == 1, value(), value(), value(), value(), value(), value(),
        value(), value(), value(), value(), value(), value(), value(), value(), value());
  }

  private LaneMetrics lane() {
    return new LaneMetrics(
        index(), index(), value(), value(), value(), value(), value(), value(), value(), value());
  }

  private ShuffleMetrics shuffle(QueryId query) {
    int stage = index();
    int worker = index();
    long[] blocked = {value(), value(), value(), value()};
    int receivers = index();
    int senders = index();
    return new ShuffleMetrics(
        query,
        stage,
        worker,
        blocked[0],
        blocked[1],
        blocked[2],
        blocked[3],
        list(receivers, this::sent),
        list(senders, this::received));
  }

  private SentMetrics sent() {
    return new SentMetrics(index(), value(), value(), value(), value(), value(), value());
  }

  private ReceivedMetrics received() {
    return new ReceivedMetrics(index(), value(), value(), value(), value(), value());
  }

  // Each channel comes behind the endpoint's counters.
  private EndpointMetrics endpoint() {
    long[] counted = Stream.generate(this::value).limit(10).mapToLong(Long::longValue).toArray();
    ChannelTraffic all = traffic();
    List<ChannelMetrics> channels = new ArrayList<>();
    while (next < values.length) {
      channels.add(channel(3 * channels.size()));
    }
    return new EndpointMetrics(
        counted[0],
        counted[1],
        counted[2],
        counted[3],
        counted[4],
        counted[5],
        counted[6],
        counted[7],
        counted[8],
        counted[9],
        List.copyOf(channels),
        all);
  }

  private ChannelMetrics channel(int text) {
    return new ChannelMetrics(
        value(), index(), texts[text], texts[text + 1], texts[text + 2], traffic());
  }

  private ChannelTraffic traffic() {
    return new ChannelTraffic(
        value(), value(), value(), value(), value(), value(), value(), value(), value());
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

  private static native long[] shuffles(long session, long counter, long incarnation, int issuer);

  private static native long[] shuffle(long shuffle);

  /** The numbers, of which the first is negative if it failed; and peer, address and transport of each channel, a line each. */
  private static native Object[] endpoint(long endpoint);
}
