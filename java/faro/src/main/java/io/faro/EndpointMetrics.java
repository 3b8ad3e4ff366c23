package io.faro;

import java.util.List;

/**
 * A snapshot of all counters of an endpoint ({@link Endpoint#metrics}).
 *
 * @param channelsOpened that have opened
 * @param channelsClosed of these, those that were drained, or closed by a side
 * @param channelsLost of these, those that have ended otherwise
 * @param channelsRefused that have not opened: refused, or nobody answered
 * @param memoryBytes what channels take now, of native memory: rings, links, TLS
 * @param memoryLimitBytes {@code memory.limit_bytes}
 * @param polls calls of {@link Poller#poll}, of all pollers, as the next three
 * @param events that these have told
 * @param waits that found nothing at once
 * @param sleeps on the doorbell
 * @param channels those that are open
 * @param all of all channels, those that are no more included
 */
public record EndpointMetrics(
    long channelsOpened,
    long channelsClosed,
    long channelsLost,
    long channelsRefused,
    long memoryBytes,
    long memoryLimitBytes,
    long polls,
    long events,
    long waits,
    long sleeps,
    List<ChannelMetrics> channels,
    ChannelTraffic all)
    implements Counters {}
