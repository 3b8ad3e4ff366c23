package io.faro.sql.exec;

import io.faro.Outcome;

/**
 * One worker's end of the shuffle of one exchange. Rows of one sender to one receiver arrive in order. Rows are
 * never changed once they were sent: a receiver in the same process may get the very array.
 *
 * <p>Threads: the worker's. A failure of the query is thrown by the call that meets it.
 */
public interface RowShuffle {
  /** Receivers that rows can be sent to: all workers of the cluster; of a broadcast one, which is all of them. */
  int receiverCount();

  /** Sends a row to one receiver, waiting for room; nothing to workers that have stopped. */
  void send(int receiver, Object[] row) throws InterruptedException;

  /** This worker sends no more rows. */
  void finish() throws InterruptedException;

  /** This worker wants no more rows. */
  void stop();

  /** {@link Outcome#DONE}: {@link #get} is the next row; else WOULD_WAIT or END_OF_STREAM. */
  Outcome tryNext();

  /** Steps to the next row, waiting for it. */
  Outcome next() throws InterruptedException;

  /** The row that was found last; may be called once. */
  Object[] get();
}
