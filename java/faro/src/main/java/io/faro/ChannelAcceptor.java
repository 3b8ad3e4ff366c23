package io.faro;

/** Decides which channels an endpoint accepts, on which poller, and with rings of which size. */
@FunctionalInterface
public interface ChannelAcceptor {
  /**
   * Answers a peer that asks for a channel. If it throws, or answers null, the peer is refused, and
   * the log has a warning.
   *
   * <p>Threads: the network thread of the endpoint. It must not block, nor use the endpoint or its
   * pollers, except {@link Poller#wake}: no other peer is served meanwhile.
   */
  ChannelAcceptance accept(ChannelRequest request);
}
