package io.faro;

import java.util.Objects;

/**
 * What to open as an {@link Endpoint}.
 *
 * <pre>{@code
 * new EndpointSpec()
 *     .withName("tm-1")
 *     .withPollers(2)
 *     .withAcceptor(request -> ChannelAcceptance.by(1))
 * }</pre>
 *
 * <p>Threads: any; immutable. The numbers are checked when the endpoint is opened.
 *
 * @param name told to peers; at most 255 bytes of UTF-8
 * @param pollerCount 1 … 64
 * @param channelLimit channels that exist at a time, 1 … 65536
 * @param acceptor asked for every channel that a peer wants; null: poller 0 accepts all
 * @param answerToOthers what a connection gets that does not begin as Faro's do, before it is
 *     closed: for an engine whose own protocol may be spoken to this port by mistake, and can carry
 *     an error. At most 4096 bytes; empty: it is closed
 */
public record EndpointSpec(
    String name,
    int pollerCount,
    int channelLimit,
    ChannelAcceptor acceptor,
    byte[] answerToOthers) {
  private static final int DEFAULT_CHANNEL_LIMIT = 1024;

  /** Takes the numbers as they are. */
  public EndpointSpec {
    Objects.requireNonNull(name, "name");
    answerToOthers = Objects.requireNonNull(answerToOthers, "answerToOthers").clone();
  }

  /** A spec without a name, with one poller, which accepts all channels, up to 1024. */
  public EndpointSpec() {
    this("", 1, DEFAULT_CHANNEL_LIMIT, null, new byte[0]);
  }

  /** This spec, but with this name. */
  public EndpointSpec withName(String name) {
    return new EndpointSpec(name, pollerCount, channelLimit, acceptor, answerToOthers);
  }

  /** This spec, but with this number of pollers. */
  public EndpointSpec withPollers(int count) {
    return new EndpointSpec(name, count, channelLimit, acceptor, answerToOthers);
  }

  /** This spec, but with at most this many channels at a time. */
  public EndpointSpec withChannelLimit(int limit) {
    return new EndpointSpec(name, pollerCount, limit, acceptor, answerToOthers);
  }

  /** This spec, but with this acceptor, which is asked for every channel that a peer wants. */
  public EndpointSpec withAcceptor(ChannelAcceptor acceptor) {
    return new EndpointSpec(
        name,
        pollerCount,
        channelLimit,
        Objects.requireNonNull(acceptor, "acceptor"),
        answerToOthers);
  }

  /** This spec, but with this answer to connections that do not begin as Faro's do. */
  public EndpointSpec withAnswerToOthers(byte[] answer) {
    return new EndpointSpec(name, pollerCount, channelLimit, acceptor, answer);
  }

  /** A copy. */
  @Override
  public byte[] answerToOthers() {
    return answerToOthers.clone();
  }
}
