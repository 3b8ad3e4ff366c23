package io.faro.sockets;

/** What runs at a worker: its user's. Threads: the worker's. */
public interface SocketsQuery {
  /** Those of later queries are larger. */
  long number();

  int stages();

  /** What comes of a stage. */
  StageRows rowsOf(int stage);

  /**
   * Called now and then while the worker waits.
   *
   * @throws RuntimeException if the query has failed
   */
  void check();

  /** The exception for a connection that has ended; may block until it is known why. */
  RuntimeException ended(String what);
}
