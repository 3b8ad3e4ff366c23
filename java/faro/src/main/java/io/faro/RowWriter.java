package io.faro;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Objects;

/**
 * Writes rows where they are sent from: claim, absolute puts, commit.
 *
 * <pre>{@code
 * if (writer.tryClaim(receiver, 12) == Outcome.DONE) {
 *   writer.putLong(0, key);
 *   writer.putInt(8, value);
 *   writer.commit(12);
 * }
 * }</pre>
 *
 * A claim that is not committed never existed; the next one takes its place. What opens, closes,
 * sends or polls on the same worker ends a claim: using it then throws {@link Code#WRONG_STATE}.
 * Numbers are little-endian and need no alignment.
 *
 * <p>Nothing is allocated and no native call is made per row, except for rows above a frame (a
 * quarter of a ring): these are written aside and copied. Threads: those of the worker.
 */
public final class RowWriter {
  private static final int LENGTH = Integer.BYTES; // in front of a row of variable width

  private final Shuffle shuffle;
  private final OpenFrames open;
  private final int rowBytes; // 0: a length in front of each row
  private final int header;
  private ByteBuffer aside = ByteBuffer.allocate(0);

  // The claim.
  private ByteBuffer memory; // null: none
  private int receiver;
  private int offset;
  private int limit;
  private int epoch;

  RowWriter(Shuffle shuffle, OpenFrames open, int rowBytes) {
    this.shuffle = shuffle;
    this.open = open;
    this.rowBytes = rowBytes;
    header = rowBytes == 0 ? LENGTH : 0;
  }

  /** Space for a row of up to {@code bytes} bytes (fixed width: exactly rowBytes). */
  public Outcome tryClaim(int receiver, int bytes) {
    check(receiver, bytes);
    if (begin(receiver, bytes)) {
      return Outcome.DONE;
    }
    return afterRoom(shuffle.tryMakeRoom(receiver, bytes), receiver, bytes);
  }

  /** The same, waiting for room. */
  public Outcome claim(int receiver, int bytes) throws InterruptedException {
    check(receiver, bytes);
    if (begin(receiver, bytes)) {
      return Outcome.DONE;
    }
    return afterRoom(shuffle.makeRoom(receiver, bytes), receiver, bytes);
  }

  /** Space for a row that is for several receivers: {@link #written} gives it away. */
  void claimAside(int bytes) {
    shuffle.enter();
    startAside(0, bytes);
  }

  /** What was written since {@link #claimAside}, {@code bytes} bytes; ends the claim. */
  byte[] written(int bytes) {
    index(0, bytes);
    memory = null;
    return aside.array();
  }

  /** Sends the first {@code bytes} bytes of the claim (fixed width: all). */
  public void commit(int bytes) {
    index(0, bytes);
    if (rowBytes != 0 && bytes != rowBytes) {
      throw new FaroException(
          Code.INVALID_ARGUMENT, "commit of " + bytes + " bytes, but rowBytes = " + rowBytes);
    }
    ByteBuffer written = memory;
    memory = null;
    if (written == aside) {
      shuffle.sendAside(receiver, written.array(), bytes);
      return;
    }
    if (header != 0) {
      written.putInt(offset - LENGTH, bytes);
      open.countRow(receiver);
    }
    open.advance(receiver, header + bytes);
  }

  /**
   * Sends an object of a lane in place of the bytes of a claim; only for rows with a length each.
   *
   * @return false if the lane is full; nothing has happened then
   */
  boolean tryCommitReference(ReferenceLane lane, Object object) {
    index(0, 0);
    if (memory == aside) {
      commit(0); // its receiver has stopped: dropped, and counted
      return true;
    }
    int mark = lane.offer(object);
    if (mark == 0) {
      return false;
    }
    memory.putInt(offset - LENGTH, mark);
    memory = null;
    open.countRow(receiver);
    open.advance(receiver, header);
    return true;
  }

  /** Gives the claim up. */
  public void abort() {
    memory = null;
  }

  /** Writes at an offset from the beginning of the row, as all {@code put…}. */
  public void putByte(int at, byte value) {
    memory.put(index(at, Byte.BYTES), value);
  }

  /** Writes two bytes. */
  public void putShort(int at, short value) {
    memory.putShort(index(at, Short.BYTES), value);
  }

  /** Writes four bytes. */
  public void putInt(int at, int value) {
    memory.putInt(index(at, Integer.BYTES), value);
  }

  /** Writes eight bytes. */
  public void putLong(int at, long value) {
    memory.putLong(index(at, Long.BYTES), value);
  }

  /** Writes eight bytes. */
  public void putDouble(int at, double value) {
    memory.putDouble(index(at, Double.BYTES), value);
  }

  /** Writes {@code bytes} bytes of an array. */
  public void putBytes(int at, byte[] from, int begin, int bytes) {
    memory.put(index(at, bytes), from, begin, bytes);
  }

  private void check(int receiver, int bytes) {
    shuffle.enter();
    memory = null;
    shuffle.checkReceiver(receiver);
    if (bytes < 0 || (rowBytes != 0 && bytes != rowBytes)) {
      throw new FaroException(
          Code.INVALID_ARGUMENT, "a claim of " + bytes + " bytes, but rowBytes = " + rowBytes);
    }
  }

  private boolean begin(int receiver, int bytes) {
    if (open.room(receiver) - header < bytes) {
      return false;
    }
    start(open.memory(receiver), receiver, open.offset(receiver) + header, bytes);
    return true;
  }

  private Outcome afterRoom(Outcome outcome, int receiver, int bytes) {
    if (outcome == Outcome.DONE && !begin(receiver, bytes)) {
      // Too large for a frame, or the receiver has stopped and the row will be dropped.
      startAside(receiver, bytes);
    }
    return outcome;
  }

  private void startAside(int receiver, int bytes) {
    if (aside.capacity() < bytes) {
      aside = ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }
    start(aside, receiver, 0, bytes);
  }

  private void start(ByteBuffer memory, int receiver, int offset, int limit) {
    this.memory = memory;
    this.receiver = receiver;
    this.offset = offset;
    this.limit = limit;
    epoch = shuffle.epoch();
  }

  private int index(int at, int bytes) {
    shuffle.enter();
    if (memory == null || epoch != shuffle.epoch()) {
      memory = null;
      throw new FaroException(
          Code.WRONG_STATE, "there is no claim, or something was done on its worker since");
    }
    Objects.checkFromIndexSize(at, bytes, limit);
    return offset + at;
  }
}
