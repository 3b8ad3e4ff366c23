package io.faro;

/**
 * The open frames of one shuffle, one per receiver: native cursors, which Java reads and moves in
 * place.
 *
 * <pre>
 *   cursor of receiver r (native; faro/shuffle.h: OutboxCursor)      open frame: in the ring, or
 *   +----------+----------+                                          in the outgoing overflow
 *   |    at    |   end    |  addresses; at == end: no open frame
 *   +----------+----------+
 * </pre>
 *
 * Frames open and close only within native calls of the worker, on its thread, and never while Java
 * code uses them. So rows are written between {@code at} and {@code end} without a call.
 *
 * <p>Threads: the worker's.
 */
final class OpenFrames {
  private final ShuffleSender sender;
  private final long cursors; // address of the cursor of receiver 0
  // The address of the row counts; with a length per row: rows in each frame, 4 bytes per receiver.
  private final long rowCounts;
  private int receivers; // 0 once the shuffle is closed: then the cursors no longer exist

  OpenFrames(ShuffleSender sender, long cursors, long rowCounts, int receivers) {
    this.sender = sender;
    this.cursors = cursors;
    this.rowCounts = rowCounts;
    this.receivers = receivers;
  }

  /** The shuffle is closed. */
  void close() {
    receivers = 0;
  }

  /** Whether {@link #cursor} may be called for this receiver. */
  boolean has(int receiver) {
    return receiver >= 0 && receiver < receivers;
  }

  /**
   * Throws the reason why there is no such receiver.
   *
   * @throws FaroException if the shuffle was closed, or there is no such receiver
   */
  void check(int receiver) {
    if (!has(receiver)) {
      sender.shuffle().enter();
      sender.checkReceiver(receiver);
    }
  }

  /** The address of a cursor. */
  long cursor(int receiver) {
    return cursors + (long) receiver * Shuffle.Layout.CURSOR_BYTES;
  }

  /** Where the next row goes. */
  static long at(long cursor) {
    return NativeMemory.getLong(cursor + Shuffle.Layout.CURSOR_AT);
  }

  /** How many bytes the open frame has left. */
  static long room(long cursor) {
    return NativeMemory.getLong(cursor + Shuffle.Layout.CURSOR_END) - at(cursor);
  }

  /** Sets where the next row goes. */
  static void move(long cursor, long at) {
    NativeMemory.putLong(cursor + Shuffle.Layout.CURSOR_AT, at);
  }

  /** Counts one more row in the open frame; for rows with a length each. */
  void countRow(int receiver) {
    long count = rowCounts + (long) receiver * Integer.BYTES;
    NativeMemory.putInt(count, NativeMemory.getInt(count) + 1);
  }

  int receivers() {
    return receivers;
  }
}
