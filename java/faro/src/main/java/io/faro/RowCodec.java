package io.faro;

/**
 * How objects become rows, and rows objects; used by {@link ObjectSender} and {@link ObjectReceiver}.
 *
 * <p>Threads: one codec may be used by all workers; it keeps no state.
 *
 * @param <T> the type of the objects
 */
public interface RowCodec<T> {
  /**
   * Width of every row, for {@link ShuffleSpec#rowBytes}; 0: rows have a length each. A shuffle of rows
   * with a length each takes codecs of any width.
   */
  int rowBytes();

  /**
   * Whether nobody changes an object once it was sent. Between workers of one session the receiver then
   * gets the very object, without {@link #write} and {@link #read}: in shuffles of rows with a length
   * each, up to {@link ShuffleSpec#referenceLimit} of them under way. What goes beyond is serialised, and
   * all rows arrive in the order in which they were sent.
   */
  default boolean immutable() {
    return false;
  }

  /**
   * What the rows are, in words: codecs of the same format read what the other one has written, and objects that go by
   * reference are of the same type. A receiver compares it with that of each sender, on whatever node: if it is
   * another one the query fails on every participant with {@link Code#STAGE_MISMATCH}, which names both (of each the
   * first 256 bytes), the workers and their nodes. Empty: not compared.
   */
  default String format() {
    return "";
  }

  /**
   * An upper limit for the bytes that {@link #write} needs for this object: what {@link Setting#ROW_LIMIT_BYTES} is
   * compared with.
   */
  int maxBytes(T object);

  /**
   * Writes an object from the beginning of the claim on, and returns its bytes. What it throws
   * reaches the sender of the object; the row then never existed.
   */
  int write(T object, RowWriter to);

  /** Reads an object that lies in a batch, {@code bytes} bytes from {@code at} on. */
  T read(Batch from, int at, int bytes);
}
