package io.faro;

/**
 * Who gets the rows that are sent to a receiver of a shuffle. All who open a stage agree on it: one
 * that differs fails the query with {@link Code#STAGE_MISMATCH}.
 */
public enum Delivery {
  /** Each receiver is a worker. Rows of a sender arrive in the order in which they were sent. */
  WORKER,
  /**
   * Each receiver is a node, in the order in which {@link ShuffleSpec#receivers} first mentions one
   * of its workers: any of the mentioned ones takes the next batch, which no other gets. Rows are
   * in order within a batch alone. A worker that sleeps, computes or makes no call keeps no other
   * of its node waiting; rows of one key may be handed out to several. Its end of stream says that
   * every sender has finished and that each row was handed out, to some worker of its node. Needs
   * {@code lane.ends = node}.
   */
  NODE;

  /** The number that native code knows; a test compares the two. */
  int number() {
    return ordinal();
  }
}
