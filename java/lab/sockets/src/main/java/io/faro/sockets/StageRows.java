package io.faro.sockets;

import io.faro.RowBuffer;
import java.nio.ByteBuffer;

/** Takes what comes of one stage. Threads: the worker's. */
public interface StageRows {
  /**
   * The rows of a frame.
   *
   * @param rows the same memory
   * @return false: it ends within a row
   */
  boolean take(ByteBuffer memory, RowBuffer rows, int begin, int bytes);

  /** Rows of another worker of this process, as they were put: a long[] or an Object[], which is the receiver's now. */
  void take(Object rows);

  /** One of the other workers sends no more. */
  void ended();
}
