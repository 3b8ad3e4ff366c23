package io.faro;

/**
 * What an operator that lives has done, as of the end of its last call ({@link Session#metrics}). A
 * worker shows up to 16 of them.
 *
 * @param worker its number
 * @param kind what it does
 * @param query of which it is
 * @param stage its first one
 * @param rowsIn added, to a join those of both sides
 * @param rowsOut groups or pairs handed out
 * @param statesSent by an aggregation: rows that passed its table, and groups of full tables;
 *     rowsIn over these is the reduction
 * @param rowsArrived states at an aggregation, rows of both sides at a join
 * @param partitionsSpilled times that one was
 * @param spilledBytes their bytes
 * @param partitionsSplit they did not fit the cache
 * @param passes by a join: times that probe rows were gone over once more
 * @param tableStates of the table that rows meet now; 0: they pass, or it is a join
 * @param heldBytes of {@code operator.memory_bytes}, now
 * @param peakBytes the most that it was
 */
public record OperatorMetrics(
    int worker,
    OperatorKind kind,
    QueryId query,
    int stage,
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
