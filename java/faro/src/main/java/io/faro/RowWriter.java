package io.faro;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.Objects;

/**
 * Writes rows where they are sent from: claim, absolute puts, commit.
 *
 * <pre>{@code
 * if (writer.claim(receiver, 12) == Outcome.DONE) {
 *   writer.putLong(0, key);
 *   writer.putInt(8, value);
 *   writer.commit(12);
 * }
 * }</pre>
 *
 * A claim that is not committed never existed; the next one replaces it. Any call that opens,
 * closes, sends or receives on the same worker ends a claim: using it then throws
 * {@link Code#WRONG_STATE}. Numbers are little-endian and need no alignment.
 *
 * <p>Nothing is allocated and no native call is made per row, except for rows larger than a frame
 * (a quarter of a ring): these are written in overflow and sent from there. Waiting, answers,
 * threads and errors are those of {@link ShuffleSender}.
 */
public final class RowWriter {
  private static final int LENGTH = Integer.BYTES; // before a row of variable width

  private static final long NO_EPOCH = -1;

  private final ShuffleSender sender; // null: a row buffer's
  private final Owner owner;
  private final OpenFrames open; // null: a row buffer's
  private final int rowBytes; // 0: each row is preceded by its length
  private final int header;

  // Where rows for several receivers are written; null: not used yet, or this writer belongs to a
  // row buffer.
  private ByteBuffer scratch;
  private long scratchAddress;
  private byte[] copied = new byte[0];

  // The claim. Numbers only: storing a reference per row would cost a garbage collector's barrier
  // each time.
  private long epoch = NO_EPOCH; // in which it is valid; NO_EPOCH: there is no claim
  private boolean inFrame; // whether it lies in the open frame of its receiver
  private int receiver;
  private long address; // where the row begins
  private int limit;

  RowWriter(ShuffleSender sender, OpenFrames open, int rowBytes) {
    this.sender = sender;
    owner = sender.shuffle().owner();
    this.open = open;
    this.rowBytes = rowBytes;
    header = rowBytes == 0 ? LENGTH : 0;
  }

  /**
   * For {@link RowBuffer}: writes to memory outside any shuffle; only {@link #claimAt} and puts.
   */
  RowWriter(Owner owner, long address) {
    sender = null;
    this.owner = owner;
    open = null;
    rowBytes = 0;
    header = 0;
    scratchAddress = address;
  }

  /** Space for a row of up to {@code bytes} bytes at an offset of that memory. */
  void claimAt(int offset, int bytes) {
    owner.enter();
    start(false, 0, scratchAddress + offset, bytes);
  }

  /**
   * Claims space for a row of up to {@code bytes} bytes (fixed width: exactly rowBytes). DONE:
   * {@link #commit} sends it.
   */
  @CheckReturnValue
  public Outcome claim(int receiver, int bytes) throws InterruptedException {
    return claim(receiver, bytes, Wait.FOREVER);
  }

  /**
   * Claims space for a row of up to {@code bytes} bytes (fixed width: exactly rowBytes), waiting
   * for room as long as {@code wait} says. DONE: {@link #commit} sends it.
   */
  @CheckReturnValue
  public <X extends Exception> Outcome claim(int receiver, int bytes, Wait<X> wait) throws X {
    if (begin(receiver, bytes)) {
      return Outcome.DONE;
    }
    Outcome outcome = sender.makeRoom(receiver, bytes, wait);
    if (outcome == Outcome.DONE && !begin(receiver, bytes)) {
      start(false, receiver, sender.apart(), bytes); // too large for a frame, or it will be dropped
    }
    return outcome;
  }

  /** Space for a row to several receivers: {@link #written} hands it out. */
  void claimAside(int bytes) {
    sender.shuffle().enter();
    if (scratch == null || scratch.capacity() < bytes) {
      scratch = ByteBuffer.allocateDirect(bytes);
      scratchAddress = NativeMemory.address(scratch);
    }
    start(false, 0, scratchAddress, bytes);
  }

  /** The {@code bytes} bytes that were written since {@link #claimAside}; ends the claim. */
  byte[] written(int bytes) {
    long from = address(0, bytes);
    epoch = NO_EPOCH;
    if (copied.length < bytes) {
      copied = new byte[bytes];
    }
    NativeMemory.get(from, copied, 0, bytes);
    Reference.reachabilityFence(scratch);
    return copied;
  }

  /**
   * Sends the {@code bytes} bytes that were written since {@link #claimAside} to all receivers, if
   * all have an open frame with room for them, and then ends the claim.
   *
   * @return false if one has no room; then nothing has happened
   */
  boolean tryCommitToAll(int bytes) {
    long row = address(0, bytes);
    if (rowBytes != 0 && bytes != rowBytes) {
      return false;
    }
    for (int to = 0; to < open.receivers(); to++) {
      if (OpenFrames.room(open.cursor(to)) - header < bytes) {
        return false;
      }
    }
    for (int to = 0; to < open.receivers(); to++) {
      long cursor = open.cursor(to);
      long at = OpenFrames.at(cursor);
      open.countRow(to);
      if (header != 0) {
        NativeMemory.putInt(at, bytes);
      }
      NativeMemory.copy(row, at + header, bytes);
      OpenFrames.move(cursor, at + header + bytes);
    }
    Reference.reachabilityFence(scratch);
    epoch = NO_EPOCH;
    return true;
  }

  /**
   * Sends the first {@code bytes} bytes of the claim (fixed width: all). Never waits, even if more
   * than a frame was claimed and less is sent: if the ring has no room for such a row, it is queued
   * in the memory of its claim.
   *
   * @throws FaroException the failure of the query: the row was not sent
   */
  public void commit(int bytes) {
    checkCommit(bytes);
    if (sender == null) {
      throw sendsNothing();
    }
    if (!inFrame) {
      sender.commitApart(bytes);
      return;
    }
    if (header != 0) {
      NativeMemory.putInt(address - LENGTH, bytes);
    }
    advance(bytes);
  }

  private void checkCommit(int bytes) {
    address(0, bytes);
    if (rowBytes != 0 && bytes != rowBytes) {
      throw new FaroException(
          Code.INVALID_ARGUMENT, "commit of " + bytes + " bytes, but rowBytes = " + rowBytes);
    }
  }

  /** Gives the claim up. */
  public void abort() {
    epoch = NO_EPOCH;
  }

  /** Writes at an offset from the beginning of the row, as all {@code put…} methods do. */
  public void putByte(int at, byte value) {
    NativeMemory.putByte(address(at, Byte.BYTES), value);
  }

  /** Writes two bytes. */
  public void putShort(int at, short value) {
    NativeMemory.putShort(address(at, Short.BYTES), value);
  }

  /** Writes four bytes. */
  public void putInt(int at, int value) {
    NativeMemory.putInt(address(at, Integer.BYTES), value);
  }

  /** Writes eight bytes. */
  public void putLong(int at, long value) {
    NativeMemory.putLong(address(at, Long.BYTES), value);
  }

  /** Writes eight bytes. */
  public void putDouble(int at, double value) {
    NativeMemory.putLong(address(at, Double.BYTES), Double.doubleToRawLongBits(value));
  }

  /** Writes {@code bytes} bytes of an array. */
  public void putBytes(int at, byte[] from, int begin, int bytes) {
    long to = address(at, bytes);
    Objects.checkFromIndexSize(begin, bytes, from.length);
    NativeMemory.put(to, from, begin, bytes);
  }

  /**
   * Writes the remaining bytes of a buffer, which may be direct, and moves its position to its
   * limit.
   */
  public void putBytes(int at, ByteBuffer from) {
    NativeMemory.put(address(at, from.remaining()), from);
  }

  /** The size of the claim in bytes. */
  int limit() {
    return limit;
  }

  private boolean begin(int receiver, int bytes) {
    epoch = NO_EPOCH;
    if (open == null) {
      throw sendsNothing();
    }
    owner.enter();
    if (!open.has(receiver)) {
      open.check(receiver);
    }
    if (bytes < 0 || (rowBytes != 0 && bytes != rowBytes)) {
      throw new FaroException(
          Code.INVALID_ARGUMENT, "a claim of " + bytes + " bytes, but rowBytes = " + rowBytes);
    }
    long cursor = open.cursor(receiver);
    if (OpenFrames.room(cursor) - header < bytes) {
      return false;
    }
    start(true, receiver, OpenFrames.at(cursor) + header, bytes);
    return true;
  }

  /** Makes the row of the claim, with this many bytes, part of the frame. */
  private void advance(int bytes) {
    OpenFrames.move(open.cursor(receiver), address + bytes);
    open.countRow(receiver);
    epoch = NO_EPOCH;
  }

  private void start(boolean inFrame, int receiver, long address, int limit) {
    this.inFrame = inFrame;
    this.receiver = receiver;
    this.address = address;
    this.limit = limit;
    epoch = owner.epoch();
  }

  /**
   * The address of these bytes of the claim, valid until it ends, for codecs that write more than a
   * value or two and check themselves that they stay within {@link #limit}.
   */
  long address(int at, int bytes) {
    owner.enter();
    // Another row that was sent in the same epoch lies where the claim was.
    if (epoch != owner.epoch()
        || (inFrame && OpenFrames.at(open.cursor(receiver)) + header != address)) {
      throw noClaim();
    }
    Objects.checkFromIndexSize(at, bytes, limit);
    return address + at;
  }

  private static FaroException sendsNothing() {
    return new FaroException(Code.WRONG_STATE, "the writer is a row buffer's: it has no receivers");
  }

  private FaroException noClaim() {
    epoch = NO_EPOCH;
    if (sender != null) {
      sender.shuffle().enter(); // it may be closed
    }
    return new FaroException(
        Code.WRONG_STATE, "there is no claim, or something was done on its worker since");
  }

  @Override
  public String toString() {
    return "row writer of the " + (sender == null ? "row buffer" : sender);
  }
}
