package io.faro;

/**
 * Counters of the link to one node; its lanes are added up. Counters of the network device are 0
 * for transports that have none.
 *
 * @param node number of the peer
 * @param transport {@code shm}, {@code tcp}, {@code verbs}; {@code local} for this node itself
 * @param connected whether the peer is connected
 * @param framesSent frames
 * @param bytesSent with headers and padding
 * @param transfers started by this end
 * @param noRoom times that a frame found no room in its ring
 * @param framesReceived frames
 * @param bytesReceived with headers and padding
 * @param readNotifications sent by this end
 * @param unreleasedBytes received and not released yet: held, or not received by the engine
 * @param posts calls that post work requests
 * @param writes work requests that carry rows
 * @param notifications messages that announce rows written, or rows read
 * @param creditReturns messages that only return credits
 * @param signalledPosts reported when completed
 * @param completions taken, for sends and receives
 * @param networkEvents that woke the network thread to take some
 * @param turns in which rows could be sent to the node ({@code network.schedule})
 * @param turnBytes bytes of frames sent in these; the rest of bytesSent went without a turn
 */
public record LinkMetrics(
    int node,
    String transport,
    boolean connected,
    long framesSent,
    long bytesSent,
    long transfers,
    long noRoom,
    long framesReceived,
    long bytesReceived,
    long readNotifications,
    long unreleasedBytes,
    long posts,
    long writes,
    long notifications,
    long creditReturns,
    long signalledPosts,
    long completions,
    long networkEvents,
    long turns,
    long turnBytes)
    implements Counters {}
