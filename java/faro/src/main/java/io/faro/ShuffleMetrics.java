package io.faro;

import java.util.List;

/**
 * What one shuffle of one worker has counted ({@link Shuffle#metrics},
 * {@link Session#shuffleMetrics}). The time that it was blocked is that of calls that wait, also on
 * virtual threads. What an engine does between two calls with {@link Wait#NONE} is not known: these
 * count without time, as does the first try of a call that then waits.
 *
 * @param query of the shuffle
 * @param stage of the shuffle
 * @param worker its number
 * @param blockedOnRoom calls that send or finish and could not be done at once
 * @param blockedOnRoomNs in such waits that are over, nanoseconds
 * @param blockedOnRows calls that receive and could not be done at once
 * @param blockedOnRowsNs in such waits that are over, nanoseconds
 * @param sent by receiver, worker or node; empty if this worker is no sender
 * @param received by sender, as in {@link ShuffleSpec#senders}; empty if it is no receiver
 */
public record ShuffleMetrics(
    QueryId query,
    int stage,
    int worker,
    long blockedOnRoom,
    long blockedOnRoomNs,
    long blockedOnRows,
    long blockedOnRowsNs,
    List<SentMetrics> sent,
    List<ReceivedMetrics> received)
    implements Counters {}
