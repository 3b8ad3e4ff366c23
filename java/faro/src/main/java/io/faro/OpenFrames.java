package io.faro;

import java.nio.ByteBuffer;

/**
 * The open frames of one shuffle, one per receiver: the native cursors, and what Java has of them.
 * Rows are written there without a call.
 *
 * <pre>
 *   cursor of receiver r (native; faro/shuffle.h: OutboxCursor)      memory of frame r: the ring, or
 *   +----------+----------+                                          a frame in the outgoing overflow
 *   |    at    |   end    |  addresses; at == end: no open frame     +------ - -
 *   +----------+----------+                                          base
 * </pre>
 *
 * Frames open and close only within native calls of the worker. Between two of them, in one epoch, at
 * and end of a frame are Java's: read from the cursor when the frame is first used ({@link #frame}),
 * moved by each row, and written back before the next native call ({@link #writeBack}, called by
 * {@link Owner#nextEpoch}), which leaves no room in them. So nothing is ever written by one side while
 * the other looks.
 *
 * <p>Threads: the worker's.
 */
final class OpenFrames {
  private final Shuffle shuffle;
  private final Owner owner;
  private final ByteBuffer cursors;
  private final ByteBuffer frameRows;
  private final ByteBuffer[] rings;
  private final long[] ringBases;
  private final OpenFrame[] frames;

  /** {@code rings} and where they begin: one per receiver; null where there is none. */
  OpenFrames(
      Shuffle shuffle,
      ByteBuffer cursors,
      ByteBuffer frameRows,
      ByteBuffer[] rings,
      long[] ringBases) {
    this.shuffle = shuffle;
    owner = shuffle.owner();
    this.cursors = cursors;
    this.frameRows = frameRows;
    this.rings = rings;
    this.ringBases = ringBases;
    frames = new OpenFrame[rings.length];
    for (int i = 0; i < frames.length; i++) {
      frames[i] = new OpenFrame(i);
    }
  }

  /**
   * The frame for a receiver, as it is in this epoch: until the worker's next native call.
   *
   * @throws FaroException if the worker is another thread's, the shuffle was closed, or there is no such
   *     receiver
   */
  OpenFrame frame(int receiver) {
    owner.enter();
    if (receiver < 0 || receiver >= frames.length) {
      shuffle.checkReceiver(receiver);
    }
    OpenFrame frame = frames[receiver];
    if (frame.end == 0) {
      read(frame);
    }
    return frame;
  }

  /** All frames, by receiver. */
  OpenFrame[] all() {
    return frames;
  }

  /** The native cursor of a frame becomes Java's. */
  private void read(OpenFrame frame) {
    shuffle.enter(); // closing ends the epoch
    int cursor = frame.receiver * Shuffle.Layout.CURSOR_BYTES;
    long at = cursors.getLong(cursor + Shuffle.Layout.CURSOR_AT);
    long end = cursors.getLong(cursor + Shuffle.Layout.CURSOR_END);
    if (at == end) {
      return; // there is none
    }
    place(frame, at, end);
    frame.at = (int) (at - frame.base);
    frame.end = (int) (end - frame.base);
    frame.newRows = 0;
    owner.lend(this, frame);
  }

  /** Makes memory and base of a frame cover these addresses. */
  private void place(OpenFrame frame, long at, long end) {
    ByteBuffer ring = rings[frame.receiver];
    long ringBase = ringBases[frame.receiver];
    if (ring != null && at >= ringBase && at < ringBase + ring.capacity()) {
      cover(frame, ring, ringBase);
    } else if (frame.memory == null || frame.memory == ring || at < frame.base
        || end > frame.base + frame.memory.capacity()) {
      cover(frame, shuffle.mapOpenFrame(frame.receiver), at);
    }
  }

  private static void cover(OpenFrame frame, ByteBuffer memory, long base) {
    if (frame.memory != memory) {
      frame.memory = memory;
      frame.longs = memory.asLongBuffer();
      frame.base = base;
    }
  }

  /** Before a native call of the worker: the cursor becomes native again. */
  void writeBack(OpenFrame frame) {
    cursors.putLong(
        frame.receiver * Shuffle.Layout.CURSOR_BYTES + Shuffle.Layout.CURSOR_AT,
        frame.base + frame.at);
    if (frame.newRows != 0) {
      int rows = frame.receiver * Integer.BYTES;
      frameRows.putInt(rows, frameRows.getInt(rows) + frame.newRows);
    }
    frame.at = frame.end = 0;
  }
}
