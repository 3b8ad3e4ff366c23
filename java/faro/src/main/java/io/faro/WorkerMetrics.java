package io.faro;

/**
 * Counters of one worker.
 *
 * @param worker its number
 * @param rowsSent in closed frames
 * @param rowsReceived handed out
 * @param rowsDropped for receivers that had stopped
 * @param waits operations that could not be done at once
 * @param sleeps on the doorbell
 * @param blockedNs in waits, nanoseconds
 * @param framesSpilled incoming frames, copied to overflow
 * @param bytesSpilled in them
 * @param framesOutOverflow outgoing frames, sent through overflow
 * @param bytesOutOverflow in them
 * @param openShuffles open now
 * @param operations calls that looked at rings, queries or alerts
 * @param heldFrames frames that the engine holds in place now
 */
public record WorkerMetrics(
    int worker,
    long rowsSent,
    long rowsReceived,
    long rowsDropped,
    long waits,
    long sleeps,
    long blockedNs,
    long framesSpilled,
    long bytesSpilled,
    long framesOutOverflow,
    long bytesOutOverflow,
    long openShuffles,
    long operations,
    long heldFrames)
    implements Counters {}
