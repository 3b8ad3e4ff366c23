package io.faro.sql.sockets;

import java.nio.ByteBuffer;

/**
 * The way from one worker to another: rows and ends of stages gather, and go in order. What answers false has done
 * no harm: try again when the worker has waited.
 *
 * <p>Threads: those of the sending worker.
 */
interface Peer extends AutoCloseable {
  /** Takes a row; false if there is no room now. */
  boolean tryPut(SocketShuffle shuffle, Object[] row);

  /** Takes a row that was also written to {@code written}, where it has that many bytes from the beginning on. */
  boolean tryPut(SocketShuffle shuffle, Object[] row, ByteBuffer written, int bytes);

  /** This worker sends no more rows of this shuffle. */
  boolean tryPutEnd(SocketShuffle shuffle);

  /** Sends what was put; whether all of it has gone. */
  boolean flush();

  /** Before the worker sleeps: it is woken when there is room for what could not go. */
  void wakeWhenRoom();

  /** A query begins at this worker. */
  void begin(SocketShuffles query);

  /** It has ended, well or not; what was put may still be here. */
  void end();

  @Override
  void close();
}
