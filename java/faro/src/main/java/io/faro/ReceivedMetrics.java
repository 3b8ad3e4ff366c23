package io.faro;

/**
 * What a shuffle has received from one of its senders ({@link ShuffleMetrics#received}). Bytes are
 * those of rows, with the length of each if they have one.
 *
 * @param sender index in {@link ShuffleSpec#senders}
 * @param rows handed out
 * @param bytes of them
 * @param batches in which they came
 * @param rowsSpilled moved from the ring to overflow before they were handed out
 * @param bytesSpilled of them
 */
public record ReceivedMetrics(
    int sender, long rows, long bytes, long batches, long rowsSpilled, long bytesSpilled)
    implements Counters {}
