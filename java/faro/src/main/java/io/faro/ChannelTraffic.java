package io.faro;

/**
 * What channels have carried: one, or many together. Bytes are those of frames, with headers and
 * padding.
 *
 * @param framesSent committed
 * @param bytesSent in them
 * @param transfers started by this side
 * @param noRoom claims that found no room
 * @param framesReceived polled
 * @param bytesReceived in them
 * @param readNotifications times that the peer was told what is read
 * @param unreleasedBytes taken and not released now
 * @param mended times that the connection was broken and made again
 */
public record ChannelTraffic(
    long framesSent,
    long bytesSent,
    long transfers,
    long noRoom,
    long framesReceived,
    long bytesReceived,
    long readNotifications,
    long unreleasedBytes,
    long mended)
    implements Counters {}
