package io.faro;

/**
 * What to open. Every worker that takes part opens the same spec, in any order, at any time.
 *
 * @param query the query
 * @param stage number of the shuffle operator in its query's plan
 * @param rowBytes width of every row; 0: rows have a length each
 * @param senders worker numbers; empty: all workers
 * @param receivers worker numbers; empty: all workers. Receivers are then numbered by their place
 */
public record ShuffleSpec(QueryId query, int stage, int rowBytes, int[] senders, int[] receivers) {
  private static final int[] ALL = {};

  /** From all workers to all workers. */
  public ShuffleSpec(QueryId query, int stage, int rowBytes) {
    this(query, stage, rowBytes, ALL, ALL);
  }
}
