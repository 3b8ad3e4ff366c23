package io.faro;

import java.util.List;

/**
 * A snapshot of all counters of a session ({@link Session#metrics}).
 *
 * @param workers of this node
 * @param links to every node, including this one
 * @param lanes of these links; lanes within this node appear twice, as sent and as received
 * @param overflowMemoryBytes memory in use for spilled rows
 * @param overflowMemoryPeakBytes the most that it was
 * @param overflowFileBytes the same in the file
 * @param overflowFilePeakBytes the most that it was
 * @param queriesRunning queries that have not ended
 * @param queriesFailed since the session was opened
 */
public record SessionMetrics(
    List<WorkerMetrics> workers,
    List<LinkMetrics> links,
    List<LaneMetrics> lanes,
    long overflowMemoryBytes,
    long overflowMemoryPeakBytes,
    long overflowFileBytes,
    long overflowFilePeakBytes,
    long queriesRunning,
    long queriesFailed)
    implements Counters {}
