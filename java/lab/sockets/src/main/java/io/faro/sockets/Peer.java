package io.faro.sockets;

import io.faro.RowCodec;
import java.nio.ByteBuffer;

/**
 * The way from one worker to another: rows and ends of stages gather, and go in order. What answers false has done
 * no harm: try again when the worker has waited. The rows of a stage are put in one of the ways.
 *
 * <p>Threads: those of the sending worker.
 */
public interface Peer extends AutoCloseable {
  /** Takes a row; false if there is no room now. */
  boolean tryPut(int stage, long row);

  /** Takes a row that is an object; false if there is no room now. */
  <T> boolean tryPut(int stage, RowCodec<T> codec, T row);

  /**
   * Takes a row that is an object; false if there is no room now. The row was also written to
   * {@code written}, where it has that many bytes from the beginning on.
   */
  <T> boolean tryPut(int stage, RowCodec<T> codec, T row, ByteBuffer written, int bytes);

  /** This worker sends no more rows of this stage. */
  boolean tryPutEnd(int stage);

  /** Sends what was put; whether all of it has gone. */
  boolean flush();

  /** Before the worker sleeps: it is woken when there is room for what could not go. */
  void wakeWhenRoom();

  /** A query begins at this worker. */
  void begin(SocketsQuery query);

  /** It has ended, well or not; what was put may still be here. */
  void end();

  @Override
  void close();
}
