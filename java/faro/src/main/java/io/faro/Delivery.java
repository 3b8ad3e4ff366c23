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
   * {@code lane.ends} = node or both.
   */
  NODE,
  /**
   * A broadcast. There is one receiver, number 0: all listed workers, of which each gets every row,
   * in the order in which a sender has sent it. A row travels once to each node, whose workers read
   * it where it lies. What a worker does not take is moved to overflow after the drain delay, in
   * one copy for all who have not read it. A worker that stops or closes the shuffle reads no more;
   * senders stop when all listed workers have. Has no groups. Needs {@code lane.ends} =
   * node or both.
   */
  REPLICATE;

  /** The number that native code knows; a test compares the two. */
  int number() {
    return ordinal();
  }
}
