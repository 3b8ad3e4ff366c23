package io.faro;

import java.nio.ByteBuffer;

/**
 * Where the next row of one shuffle goes, per receiver: the native cursors, and the memory that they
 * point into. Rows are written there without a call.
 *
 * <pre>
 *   cursor of receiver r (native; faro/shuffle.h: OutboxCursor)      memory[r]: the ring, or a frame
 *   +----------+----------+                                          in the outgoing overflow
 *   |    at    |   end    |  addresses; at == end: no open frame     +------ - -
 *   +----------+----------+                                          base[r]
 * </pre>
 *
 * A frame opens only within a native call of this shuffle; whoever makes one calls {@link #opened},
 * so that memory[r] always covers what the cursor points to. Frames close within any native call of
 * the worker.
 *
 * <p>Threads: the worker's.
 */
final class OpenFrames {
  final ByteBuffer cursors;
  final ByteBuffer frameRows;
  final int cursorBytes;
  final int atOffset;
  final int endOffset;

  private final Shuffle shuffle;
  private final ByteBuffer[] memory;
  private final long[] base;
  private final ByteBuffer[] rings;
  private final long[] ringBase;

  OpenFrames(
      Shuffle shuffle, ByteBuffer cursors, ByteBuffer frameRows, ByteBuffer[] rings, long[] ringBase) {
    this.shuffle = shuffle;
    this.cursors = cursors;
    this.frameRows = frameRows;
    this.rings = rings;
    this.ringBase = ringBase;
    memory = rings.clone();
    base = ringBase.clone();
    cursorBytes = Shuffle.Layout.CURSOR_BYTES;
    atOffset = Shuffle.Layout.CURSOR_AT;
    endOffset = Shuffle.Layout.CURSOR_END;
  }

  int receiverCount() {
    return memory.length;
  }

  /** Bytes left in the open frame for a receiver. */
  long room(int receiver) {
    int cursor = receiver * cursorBytes;
    return cursors.getLong(cursor + endOffset) - cursors.getLong(cursor + atOffset);
  }

  ByteBuffer memory(int receiver) {
    return memory[receiver];
  }

  /** The address where {@link #memory} begins. */
  long base(int receiver) {
    return base[receiver];
  }

  /** Where in {@link #memory} the next row goes. */
  int offset(int receiver) {
    return (int) (cursors.getLong(receiver * cursorBytes + atOffset) - base[receiver]);
  }

  void advance(int receiver, int bytes) {
    int at = receiver * cursorBytes + atOffset;
    cursors.putLong(at, cursors.getLong(at) + bytes);
  }

  void countRow(int receiver) {
    frameRows.putInt(receiver * 4, frameRows.getInt(receiver * 4) + 1);
  }

  /** A native call may have opened a frame for this receiver. */
  void opened(int receiver) {
    long at = cursors.getLong(receiver * cursorBytes + atOffset);
    long end = cursors.getLong(receiver * cursorBytes + endOffset);
    if (at == end) {
      return;
    }
    ByteBuffer ring = rings[receiver];
    long inRing = at - ringBase[receiver];
    if (ring != null && inRing >= 0 && inRing < ring.capacity()) {
      memory[receiver] = ring;
      base[receiver] = ringBase[receiver];
    } else if (memory[receiver] == ring || at < base[receiver]
        || end > base[receiver] + memory[receiver].capacity()) {
      memory[receiver] = shuffle.mapOpenFrame(receiver);
      base[receiver] = at;
    }
  }
}
