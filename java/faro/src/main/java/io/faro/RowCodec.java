package io.faro;

/**
 * Turns objects into rows and rows into objects; used by {@link ObjectSender} and
 * {@link ObjectReceiver}.
 *
 * <p>Threads: one codec may be used by all workers; it keeps no state.
 *
 * @param <T> the type of the objects
 */
public interface RowCodec<T> {
  /**
   * Width of every row, for {@link ShuffleSpec#rowBytes}; 0: rows have a length each. A shuffle of
   * rows with a length each takes codecs of any width.
   */
  int rowBytes();

  /**
   * Names the format of the rows. Codecs of the same format can read what the other has written. A
   * receiver compares its format with that of each sender, on any node. If they differ, the query
   * fails on every participant with {@link Code#STAGE_MISMATCH}, which names both formats (the
   * first 256 bytes of each), the workers and their nodes. Empty: not compared.
   */
  default String format() {
    return "";
  }

  /**
   * An upper bound for the bytes that {@link #write} needs for this object; it is compared with
   * {@link Setting#ROW_LIMIT_BYTES}.
   */
  int maxBytes(T object);

  /**
   * Writes an object at the beginning of the claim, and returns how many bytes it took. What it
   * throws reaches the sender of the object; the row then never existed.
   */
  int write(T object, RowWriter to);

  /** Reads an object of {@code bytes} bytes at {@code at} in a batch. */
  T read(Batch from, int at, int bytes);
}
