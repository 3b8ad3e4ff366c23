package io.faro;

/**
 * What an aggregation has done at this worker until now.
 *
 * @param rows added here
 * @param rowsPassed of these: sent without meeting a table
 * @param statesSent rows that passed, and groups of full tables
 * @param statesReceived from all senders
 * @param groups handed out here
 * @param tableStates of the table that rows meet now; 0: they pass
 * @param mostTableStates of the largest one
 * @param partitionsSplit they had more groups than fit the cache
 * @param spilledBytes of states, through overflow
 * @param peakBytes of {@code operator.memory_bytes}
 */
public record AggregationMetrics(
    long rows,
    long rowsPassed,
    long statesSent,
    long statesReceived,
    long groups,
    long tableStates,
    long mostTableStates,
    long partitionsSplit,
    long spilledBytes,
    long peakBytes) {}
