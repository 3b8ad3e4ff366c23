package io.faro;

/**
 * What all operators of a kind that a worker has made have done, added up
 * ({@link Session#metrics}). The last three are of those that live.
 *
 * @param worker its number
 * @param kind what they do
 * @param rowsIn added, to a join those of both sides
 * @param rowsOut groups or pairs handed out
 * @param statesSent by an aggregation: rows that passed its table, and groups of full tables;
 *     rowsIn over these is the reduction
 * @param rowsArrived states at an aggregation, rows of both sides at a join
 * @param partitionsSpilled times that one was
 * @param spilledBytes their bytes
 * @param partitionsSplit they did not fit the cache
 * @param passes by a join: times that probe rows were gone over once more
 * @param tableStates of the tables that rows meet now
 * @param heldBytes of {@code operator.memory_bytes}, now
 * @param peakBytes the most that each held, added up
 */
public record OperatorTotals(
    int worker,
    OperatorKind kind,
    long rowsIn,
    long rowsOut,
    long statesSent,
    long rowsArrived,
    long partitionsSpilled,
    long spilledBytes,
    long partitionsSplit,
    long passes,
    long tableStates,
    long heldBytes,
    long peakBytes)
    implements Counters {}
