package io.faro;

/**
 * What a channel has counted that is open, or is being drained.
 *
 * @param channel as {@link Poller} names it
 * @param poller which one serves it, {@link Poller#index}
 * @param peer {@link EndpointSpec#name} of the peer
 * @param address where it listens, or connects from
 * @param transport {@code "shm"}, {@code "tcp"}, {@code "verbs"}
 * @param traffic what it has carried
 */
public record ChannelMetrics(
    long channel,
    int poller,
    String peer,
    String address,
    String transport,
    ChannelTraffic traffic) {}
