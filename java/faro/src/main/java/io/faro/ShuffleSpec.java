package io.faro;

/**
 * What to open. Every worker that takes part opens the same spec, in any order, at any time.
 *
 * @param query the query
 * @param stage number of the shuffle operator in its query's plan
 * @param rowBytes width of every row; 0: rows have a length each
 * @param senders worker numbers; empty: all workers
 * @param receivers worker numbers; empty: all workers. Receivers are then numbered by their place
 * @param referenceLimit most objects under way by reference from one worker to another one of the same
 *     session (see {@link RowCodec#immutable}), rounded up to a power of two; 0: none
 */
public record ShuffleSpec(
    QueryId query, int stage, int rowBytes, int[] senders, int[] receivers, int referenceLimit) {
  /** Their marks, of 4 bytes, are then about what makes a transfer start (transfer.threshold_bytes). */
  private static final int DEFAULT_REFERENCE_LIMIT = 4096;

  private static final int[] ALL = {};

  /** Checks the limit; all else is checked when the shuffle is opened. */
  public ShuffleSpec {
    if (referenceLimit < 0 || referenceLimit > 1 << 30) {
      throw new FaroException(
          Code.INVALID_ARGUMENT, "referenceLimit = " + referenceLimit + " is not in 0 … 2^30");
    }
  }

  /** From some workers to some workers. */
  public ShuffleSpec(QueryId query, int stage, int rowBytes, int[] senders, int[] receivers) {
    this(query, stage, rowBytes, senders, receivers, DEFAULT_REFERENCE_LIMIT);
  }

  /** From all workers to all workers. */
  public ShuffleSpec(QueryId query, int stage, int rowBytes) {
    this(query, stage, rowBytes, ALL, ALL);
  }

  /** The same with another limit for objects by reference. */
  public ShuffleSpec withReferenceLimit(int limit) {
    return new ShuffleSpec(query, stage, rowBytes, senders, receivers, limit);
  }
}
