package io.faro;

/**
 * What a shuffle has sent to one of its receivers ({@link ShuffleMetrics#sent}). Bytes are those of
 * rows, with the length of each if they have one.
 *
 * @param receiver its index in {@link ShuffleSpec#receivers}; if rows are not for a worker each
 *     ({@link Delivery}), that of a node, in the order in which these are first mentioned there
 * @param rows in closed frames; after {@link ShuffleSender#finish} all, without those that were
 *     dropped
 * @param bytes of them
 * @param frames a row too large for a frame counts as one
 * @param noRoom times that a call found no room for a row, or the end, on the way to it
 * @param rowsOutOverflow of these rows, those sent by way of overflow
 * @param bytesOutOverflow of them
 */
public record SentMetrics(
    int receiver,
    long rows,
    long bytes,
    long frames,
    long noRoom,
    long rowsOutOverflow,
    long bytesOutOverflow)
    implements Counters {}
