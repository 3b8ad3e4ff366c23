package io.faro;

/**
 * Counters of one lane, from one worker to another, at least one of them on this node; its rings
 * are added up.
 *
 * @param sender number of the worker
 * @param receiver number of the worker
 * @param framesSent 0 if the sender is on another node, as the next three
 * @param bytesSent with headers and padding
 * @param transfers started by the sender
 * @param noRoom times that a frame found no room in its ring
 * @param framesReceived 0 if the receiver is on another node, as the next three
 * @param bytesReceived with headers and padding
 * @param readNotifications sent by the receiver
 * @param unreleasedBytes received and not released yet: held, or not received by the engine
 */
public record LaneMetrics(
    int sender,
    int receiver,
    long framesSent,
    long bytesSent,
    long transfers,
    long noRoom,
    long framesReceived,
    long bytesReceived,
    long readNotifications,
    long unreleasedBytes)
    implements Counters {}
