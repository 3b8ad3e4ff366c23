package io.faro;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.lang.ref.Reference;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/**
 * Listens for peers, and carries the channels to them: frames between two peers, for engines with a
 * flow control, a failure model and a scheduler of their own. There is no cluster, there are no
 * queries and no workers: peers come and go, and the ring of a channel is its flow control.
 *
 * <p>Of its {@link SessionConfig} it uses {@code cluster.listen} (127.0.0.1:0 unless set),
 * {@code cluster.id}, {@code security.*}, {@code transport}, {@code shm.folder}, {@code verbs.*},
 * {@code memory.limit_bytes}, {@code connect.timeout_ms}, {@code close.timeout_ms},
 * {@code liveness.timeout_ms}, {@code link.mend_ms}, {@code channel.*}, {@code wait.*},
 * {@code counters.folder} and {@code metrics.*}.
 *
 * <p>The rings of a channel are given back when it has ended ({@link Poller}). What else it has of
 * native memory stays until nobody refers to the endpoint and its pollers any more. One that nobody
 * refers to and that was not closed was forgotten: it is closed some time after, and a warning in
 * the log tells where it was opened. As long as it is open, what its acceptor refers to is kept.
 *
 * <p>Threads: any.
 */
public final class Endpoint implements AutoCloseable {
  private final String address;
  private final List<Poller> pollers;
  private final OpenEndpoint open;

  private Endpoint(long handle, int pollerCount, Throwable opened) {
    address = new String(address(handle), UTF_8);
    long[] handles = new long[pollerCount];
    List<Poller> mine = new ArrayList<>();
    for (int i = 0; i < pollerCount; i++) {
      handles[i] = poller(handle, i);
      mine.add(new Poller(this, i, handles[i]));
    }
    pollers = List.copyOf(mine);
    open = new OpenEndpoint(handle, handles, address, opened);
    Session.CLEANER.register(this, open);
  }

  /**
   * Listens, with one poller, and accepts every channel. As
   * {@link #open(SessionConfig, EndpointSpec)}.
   */
  public static Endpoint open(SessionConfig config) {
    return open(config, new EndpointSpec());
  }

  /**
   * Listens. Never blocks for long.
   *
   * @throws FaroException {@link Code#CONFIG_INVALID}, {@link Code#INVALID_ARGUMENT} (the spec),
   *     {@link Code#ADDRESS_IN_USE}, {@link Code#TRANSPORT_UNAVAILABLE},
   *     {@link Code#RESOURCE_LIMIT}, {@link Code#SYSTEM_ERROR}
   */
  public static Endpoint open(SessionConfig config, EndpointSpec spec) {
    Objects.requireNonNull(config, "config");
    Objects.requireNonNull(spec, "spec");
    NativeLibrary.ensureLoaded();
    return NativeLog.opening(() -> openLogged(config, spec));
  }

  private static Endpoint openLogged(SessionConfig config, EndpointSpec spec) {
    try (VerbsModule verbs = VerbsModule.unpackFor(config)) {
      byte[] settings = verbs.in(config).encoded();
      try {
        long handle =
            open(
                settings,
                config.usesEnvironment(),
                Utf8.whole("the name of an endpoint", spec.name()),
                spec.pollerCount(),
                spec.channelLimit(),
                spec.acceptor() == null ? null : new AcceptCall(spec.acceptor()),
                spec.answerToOthers());
        return new Endpoint(
            FaroException.checked(handle), spec.pollerCount(), new Throwable("opened here"));
      } finally {
        Arrays.fill(settings, (byte) 0);
      }
    }
  }

  /**
   * What each of these channels would take of {@code memory.limit_bytes} on this side, in bytes:
   * its rings, and the native memory that this process has for it beside them (some KiB, with TLS
   * some 25 KiB per connection), over that of the transports which takes most, of those that the
   * configuration allows and that work here. An engine that makes its rings so small that as many
   * channels fit as it expects asks this first. Sizes of rings have to be given. Listens nowhere;
   * blocks for opening RDMA devices.
   *
   * @return one number for each of the channels
   * @throws FaroException {@link Code#CONFIG_INVALID}, {@link Code#INVALID_ARGUMENT} (a size),
   *     {@link Code#TRANSPORT_UNAVAILABLE}, {@link Code#RESOURCE_LIMIT}, {@link Code#SYSTEM_ERROR}
   */
  public static long[] channelMemory(SessionConfig config, List<ChannelSpec> channels) {
    Objects.requireNonNull(config, "config");
    Nulls.none(channels, "channels");
    NativeLibrary.ensureLoaded();
    NativeLog.enter();
    long[] memory = new long[channels.size()];
    try (VerbsModule verbs = VerbsModule.unpackFor(config)) {
      byte[] settings = verbs.in(config).encoded();
      try {
        int result =
            channelMemory(
                settings,
                config.usesEnvironment(),
                channels.stream().mapToInt(ChannelSpec::sendBytes).toArray(),
                channels.stream().mapToInt(ChannelSpec::receiveBytes).toArray(),
                memory);
        FaroException.checked(result);
        return memory;
      } finally {
        Arrays.fill(settings, (byte) 0);
      }
    } finally {
      NativeLog.leave();
    }
  }

  /** Where peers connect: host:port, with the port that the system chose. */
  public String address() {
    return address;
  }

  /** Its pollers. */
  public List<Poller> pollers() {
    return pollers;
  }

  /** The i-th poller. */
  public Poller poller(int index) {
    return pollers.get(index);
  }

  /**
   * What it has counted, also after {@link #close}. Takes longer the more channels there are.
   *
   * @throws FaroException {@link Code#RESOURCE_LIMIT} if there is no memory
   */
  public EndpointMetrics metrics() {
    EndpointMetrics metrics = NativeMetrics.ofEndpoint(open.handle());
    Reference.reachabilityFence(this);
    return metrics;
  }

  /**
   * Closes all channels at once, tells the peers, and stops the network thread. Drain channels
   * first to lose nothing. Every wait of a poller ends. Frames that were not released can still be
   * read; {@link Poller} says what else can be called. Closing twice is fine. Blocks at most
   * {@code close.timeout_ms}; no interrupt ends it.
   */
  @Override
  public void close() {
    if (!VirtualThreads.isCurrent()) {
      open.close();
      return;
    }
    new Background<Void>(
            "faro-close-" + address,
            neverCancelled -> {
              open.close();
              return null;
            })
        .awaitUninterruptibly();
  }

  @Override
  public String toString() {
    return "endpoint " + address;
  }

  /** Writes {@code memoryBytes} and returns 0, or the negative code. */
  private static native int channelMemory(
      byte[] settings,
      boolean environment,
      int[] sendBytes,
      int[] receiveBytes,
      long[] memoryBytes);

  /** The handle, or the negative code. {@code acceptor}: null, or what is asked for channels. */
  private static native long open(
      byte[] settings,
      boolean environment,
      byte[] name,
      int pollers,
      int channelLimit,
      AcceptCall acceptor,
      byte[] answerToOthers);

  private static native byte[] address(long handle);

  /** The handle of a poller. */
  private static native long poller(long handle, int index);

  static native void close(long handle);

  /** Nothing of it may be used any more. */
  static native void destroy(long handle, long[] pollers);
}
