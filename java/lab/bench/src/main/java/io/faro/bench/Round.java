package io.faro.bench;

import io.faro.QueryId;

/**
 * One timed pass of the job.
 *
 * @param number from 0
 * @param query of this round; null where Faro does not carry it
 */
public record Round(int number, QueryId query) {}
