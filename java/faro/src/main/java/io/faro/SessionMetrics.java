package io.faro;

import java.util.List;

/**
 * A snapshot of all counters of a session ({@link Session#metrics}).
 *
 * @param workers of this node
 * @param links to every node, including this one
 * @param lanes of these links; lanes within this node appear twice, as sent and as received
 * @param operators of this node that live
 * @param operatorTotals by worker of this node and kind, of all that were made
 * @param overflowMemoryBytes memory in use for spilled rows
 * @param overflowMemoryPeakBytes the most memory that was in use for spilled rows
 * @param overflowFileBytes bytes of the overflow file in use for spilled rows
 * @param overflowFilePeakBytes the most bytes of the overflow file that were in use
 * @param queriesRunning queries that have not ended
 * @param queriesFailed since the session was opened
 * @param untakenFrames with {@code lane.ends = node}: frames of rows that no worker has taken yet
 * @param untakenStreams of which these frames are: a shuffle, from one worker
 */
public record SessionMetrics(
    List<WorkerMetrics> workers,
    List<LinkMetrics> links,
    List<LaneMetrics> lanes,
    List<OperatorMetrics> operators,
    List<OperatorTotals> operatorTotals,
    long overflowMemoryBytes,
    long overflowMemoryPeakBytes,
    long overflowFileBytes,
    long overflowFilePeakBytes,
    long queriesRunning,
    long queriesFailed,
    long untakenFrames,
    long untakenStreams)
    implements Counters {}
