package io.faro.sql.exec;

/** One worker's ends of the shuffles of one query. Threads: the worker's. */
public interface Shuffles extends AutoCloseable {
  /** That of an exchange. */
  RowShuffle stage(int stage);

  /**
   * For loops that send and receive nothing.
   *
   * @throws RuntimeException if the query has failed or was cancelled
   */
  void check();

  /** After all rows were sent, and those that are wanted read: others need this worker no more when it returns. */
  default void complete() {}

  /** Also when the query has failed. */
  @Override
  void close();
}
