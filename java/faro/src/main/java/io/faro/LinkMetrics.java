package io.faro;

/**
 * Counters of the link to one node; its lanes added up. What is of the network device is 0 for transports
 * without.
 *
 * @param node number of the peer
 * @param transport {@code shm}, {@code tcp}, {@code verbs}; {@code local} for the own node
 * @param connected whether the peer is there
 * @param framesSent frames
 * @param bytesSent with headers and padding
 * @param transfers started by this end
 * @param framesReceived frames
 * @param bytesReceived with headers and padding
 * @param readNotifications sent by this end
 * @param posts calls that hand over work requests
 * @param writes work requests that carry rows
 * @param notifications messages that tell of rows, or of rows read
 * @param creditReturns messages that only return credits
 * @param signalledPosts reported when completed
 * @param completions taken, of what was sent and received
 * @param networkEvents that woke the network thread to take some
 * @param noRoom times that a frame found no room in its ring
 * @param unreleasedBytes received and not released now: held, or not polled
 */
public record LinkMetrics(
    int node,
    String transport,
    boolean connected,
    long framesSent,
    long bytesSent,
    long transfers,
    long framesReceived,
    long bytesReceived,
    long readNotifications,
    long posts,
    long writes,
    long notifications,
    long creditReturns,
    long signalledPosts,
    long completions,
    long networkEvents,
    long noRoom,
    long unreleasedBytes)
    implements Counters {}
