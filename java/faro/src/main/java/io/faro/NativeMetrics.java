package io.faro;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Stream;

/**
 * Reads the snapshots of jni/metrics.cc: each value, and each text, in the order in which it stands
 * there.
 */
final class NativeMetrics {
  private final long[] values;
  private final Iterator<String> texts; // of links or channels
  private int next;

  private NativeMetrics(long[] values, String lines) {
    this.values = values;
    texts = lines.lines().iterator();
  }

  /** Reads what native code has told: numbers, and lines of text. */
  private NativeMetrics(Object[] told) {
    this((long[]) told[0], new String((byte[]) told[1], UTF_8));
  }

  /** The snapshot of the session with this handle; throws {@link Code#SESSION_CLOSED}. */
  static SessionMetrics of(long session) {
    NativeMetrics read = new NativeMetrics(snapshot(session));
    FaroException.checked(read.value());
    return read.session();
  }

  /**
   * The metrics of a query's shuffles that the session with this handle knows; throws
   * {@link Code#SESSION_CLOSED}.
   */
  static List<ShuffleMetrics> ofQuery(long session, QueryId query) {
    NativeMetrics read =
        ofShuffles(shuffles(session, query.counter(), query.incarnation(), query.issuer()));
    List<ShuffleMetrics> all = new ArrayList<>();
    while (read.next < read.values.length) {
      all.add(read.shuffle(query));
    }
    return List.copyOf(all);
  }

  /** The metrics of the shuffle with this handle, which may be closed, but not destroyed. */
  static ShuffleMetrics ofShuffle(long shuffle, QueryId query) {
    return ofShuffles(shuffle(shuffle)).shuffle(query);
  }

  /** The metrics of the endpoint with this handle, which may be closed, but not destroyed. */
  static EndpointMetrics ofEndpoint(long endpoint) {
    NativeMetrics read = new NativeMetrics(endpoint(endpoint));
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
    return new SessionMetrics(
        list(index(), this::worker),
        list(index(), this::link),
        list(index(), this::lane),
        list(index(), this::operator),
        list(index(), this::operatorTotals),
        value(), value(), value(), value(), value(), value(), value(), value());
  }

  private WorkerMetrics worker() {
    return new WorkerMetrics(
        index(), value(), value(), value(), value(), value(), value(), value(), value(), value(),
        value(), value(), value(), value());
  }

  private LinkMetrics link() {
    return new LinkMetrics(
        index(), texts.next(), value() == 1, value(), value(), value(), value(), value(), value(),
        value(), value(), value(), value(), value(), value(), value(), value(), value(), value(),
        value());
  }

  private LaneMetrics lane() {
    return new LaneMetrics(
        index(), index(), value(), value(), value(), value(), value(), value(), value(), value());
  }

  private OperatorMetrics operator() {
    return new OperatorMetrics(
        index(), OperatorKind.of(value()), new QueryId(value(), value(), index()), index(), value(),
        value(), value(), value(), value(), value(), value(), value(), value(), value(), value());
  }

  private OperatorTotals operatorTotals() {
    return new OperatorTotals(
        index(), OperatorKind.of(value()), value(), value(), value(), value(), value(), value(),
        value(), value(), value(), value(), value());
  }

  private ShuffleMetrics shuffle(QueryId query) {
    return new ShuffleMetrics(
        query, index(), index(), value(), value(), value(), value(), list(index(), this::sent),
        list(index(), this::received));
  }

  private SentMetrics sent() {
    return new SentMetrics(index(), value(), value(), value(), value(), value(), value());
  }

  private ReceivedMetrics received() {
    return new ReceivedMetrics(index(), value(), value(), value(), value(), value());
  }

  private EndpointMetrics endpoint() {
    return new EndpointMetrics(
        value(), value(), value(), value(), value(), value(), value(), value(), value(), value(),
        list(index(), this::channel), traffic());
  }

  private ChannelMetrics channel() {
    return new ChannelMetrics(
        value(), index(), texts.next(), texts.next(), texts.next(), traffic());
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

  /**
   * The numbers, of which the first is negative if it failed; and the transport of each link, a
   * line each.
   */
  private static native Object[] snapshot(long session);

  private static native long[] shuffles(long session, long counter, long incarnation, int issuer);

  private static native long[] shuffle(long shuffle);

  /**
   * The numbers, of which the first is negative if it failed; and peer, address and transport of
   * each channel, a line each.
   */
  private static native Object[] endpoint(long endpoint);
}
