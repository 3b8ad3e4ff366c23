package io.faro;

import java.nio.ByteBuffer;
import java.util.Objects;

/**
 * Rows that were received, where they lie: in the ring, or in memory if they were spilled.
 * {@link ShuffleReceiver#receive} fills it; the same object is used for each call, and nothing is
 * allocated per batch.
 *
 * <p>A held batch keeps its space in the ring, so release it soon. A worker that holds batches
 * never waits: calls that would wait answer {@link Outcome#HOLDING}. Reading a batch that was
 * released throws {@link Code#WRONG_STATE}; one whose shuffle was closed, {@link Code#CLOSED}. A
 * batch that is held while the session is closed can still be read, until its shuffle is closed.
 * Numbers are little-endian and need no alignment. A peer on the same machine could change the
 * bytes while they are read: load a length once.
 *
 * <p>Threads: those of its worker.
 */
public final class Batch implements AutoCloseable {
  private static final int LENGTH = Integer.BYTES; // before a row of variable width

  private final ShuffleReceiver receiver; // null: a row buffer's
  private final Owner owner;
  private final int number;

  private final byte[] text = new byte[1024]; // for the bytes of a string

  private long address; // of the first row; 0: empty
  private ByteBuffer memory; // of the caller's, where its row lies; null: elsewhere
  private boolean isDetached;
  private boolean isKept;
  private int bytes;
  private int rowCount;
  private int rowBytes; // 0: each row is preceded by its length
  private int sender;

  // State of nextRow: where the current row lies, and how many follow.
  private int rowOffset;
  private int rowLength;
  private int rowsLeft;
  private int nextOffset;

  Batch(ShuffleReceiver receiver, int number) {
    this.receiver = receiver;
    owner = receiver.shuffle().owner();
    this.number = number;
  }

  /** For {@link RowBuffer}: all of this memory; only {@code get…}. */
  Batch(Owner owner, long address, int bytes) {
    receiver = null;
    this.owner = owner;
    number = 0;
    place(address, null, bytes, 0, 0, 0);
  }

  /** Whether it holds no rows. */
  public boolean isEmpty() {
    return address == 0;
  }

  /**
   * The worker that sent the rows: its index in {@link ShuffleSpec#senders}. With all workers as
   * senders that is its number.
   */
  public int sender() {
    return sender;
  }

  /** Rows in the batch. */
  public int rowCount() {
    return rowCount;
  }

  /**
   * Width of all rows; 0: each is preceded by its length, of four bytes. A row larger than a frame
   * comes alone, and without: this is its length then.
   */
  public int rowBytes() {
    return rowBytes;
  }

  /** Bytes of all rows, with their lengths if they have one each. */
  public int bytes() {
    return bytes;
  }

  /** Reads at an offset from the beginning of the batch, as all {@code get…} methods do. */
  public byte getByte(int at) {
    return NativeMemory.getByte(addressOf(at, Byte.BYTES));
  }

  /** Reads two bytes. */
  public short getShort(int at) {
    return NativeMemory.getShort(addressOf(at, Short.BYTES));
  }

  /** Reads four bytes. */
  public int getInt(int at) {
    return NativeMemory.getInt(addressOf(at, Integer.BYTES));
  }

  /** Reads eight bytes. */
  public long getLong(int at) {
    return NativeMemory.getLong(addressOf(at, Long.BYTES));
  }

  /** Reads eight bytes. */
  public double getDouble(int at) {
    return Double.longBitsToDouble(NativeMemory.getLong(addressOf(at, Double.BYTES)));
  }

  /** Copies bytes into an array. */
  public void getBytes(int at, byte[] to, int begin, int count) {
    long from = address(at, count);
    Objects.checkFromIndexSize(begin, count, to.length);
    NativeMemory.get(from, to, begin, count);
  }

  /**
   * Fills the remaining space of a buffer, and moves its position to its limit. With {@code at} 0
   * and {@link #bytes} remaining it copies the whole batch. The buffer may be direct; it belongs to
   * the caller, and keeps its contents when the batch is released.
   */
  public void getBytes(int at, ByteBuffer to) {
    NativeMemory.get(address(at, to.remaining()), to);
  }

  /**
   * The string that {@link Utf8} has written in {@code count} bytes from an address on. Allocates
   * nothing but the string, unless it is long.
   */
  String string(long from, int count) {
    byte[] utf8 = count <= text.length ? text : new byte[count];
    NativeMemory.get(from, utf8, 0, count);
    return Utf8.decode(utf8, count);
  }

  /** Copies {@code count} rows that are one long each, from row {@code first} on, into an array. */
  public void getLongs(int first, long[] to, int begin, int count) {
    Objects.checkFromIndexSize(begin, count, to.length);
    Objects.checkFromIndexSize(first, count, rowCount);
    if (rowBytes != Long.BYTES) {
      throw new FaroException(Code.INVALID_ARGUMENT, "rows of " + rowBytes + " bytes, not 8");
    }
    NativeMemory.get(address(first * Long.BYTES, count * Long.BYTES), to, begin, count);
  }

  /**
   * Steps to the next row (the first call: to the first row). False after the last row.
   *
   * <p>{@link #rowOffset} and {@link #rowLength} then say where it lies.
   *
   * @throws FaroException {@link Code#PROTOCOL_ERROR} if the sender's lengths do not fit its batch
   */
  public boolean nextRow() {
    if (rowsLeft == 0) {
      return false;
    }
    int at = nextOffset;
    int length = rowBytes;
    if (rowBytes == 0) {
      checkRest(at, LENGTH);
      length = getInt(at);
      at += LENGTH;
    }
    checkRest(at, length);
    address(at, length);
    rowOffset = at;
    rowLength = length;
    nextOffset = at + length;
    rowsLeft--;
    return true;
  }

  /**
   * Sets to[i] to where row i begins, its length included, and to[rowCount] to where the last one
   * ends: the bytes of row i lie from to[i] (from to[i] + 4 if {@link #rowBytes} is 0) up to
   * to[i + 1]. They are there to be read in any order, beside {@link #nextRow}.
   *
   * @return of how many rows these are: {@link #rowCount}, or one less than {@code to} has places
   *     if these are fewer
   * @throws FaroException {@link Code#PROTOCOL_ERROR} if the sender's lengths do not fit its batch
   */
  public int offsets(int[] to) {
    long first = address(0, bytes);
    int rows = Math.max(0, Math.min(rowCount, to.length - 1));
    int at = 0;
    for (int row = 0; row < rows; row++) {
      to[row] = at;
      int length = rowBytes;
      if (rowBytes == 0) {
        checkRest(at, LENGTH);
        length = NativeMemory.getInt(first + at);
        at += LENGTH;
      }
      checkRest(at, length);
      at += length;
    }
    if (to.length != 0) {
      to[rows] = at;
    }
    return rows;
  }

  /** The number of rows that {@link #nextRow} has not reached yet. */
  int rowsLeft() {
    return rowsLeft;
  }

  /** Where the next row of {@link #nextRow} begins. */
  int nextOffset() {
    return nextOffset;
  }

  /** {@link #nextRow} continues here, with this many rows left. Only for rows of one width. */
  void standBefore(int offset, int rows) {
    nextOffset = offset;
    rowsLeft = rows;
  }

  /** Offset in the batch of the row that {@link #nextRow} has stepped to. */
  public int rowOffset() {
    return rowOffset;
  }

  /** Its length in bytes. */
  public int rowLength() {
    return rowLength;
  }

  /**
   * The buffer that {@code allocate} of {@link ShuffleReceiver#receiveInto} has given for the row
   * of this batch: the row lies there from where its position was then. Null if rows lie elsewhere.
   * It is the caller's, also when the batch was released.
   */
  public ByteBuffer memory() {
    return memory;
  }

  /** Releases the memory; the batch is then empty. Idempotent. */
  public void release() {
    if (address != 0) {
      ShuffleReceiver source = receiver();
      forget();
      source.release(this);
    }
  }

  /** Releases the memory, as {@link #release} does. */
  @Override
  public void close() {
    release();
  }

  /**
   * Copies the rows to overflow, so that they can be kept without taking space in the ring; for
   * merging.
   *
   * @throws FaroException {@link Code#OVERFLOW_EXHAUSTED}; the batch then stays as it is
   */
  public void detach() {
    if (address != 0 && !isDetached) {
      address = receiver().detach(this);
      isDetached = true;
    }
  }

  /**
   * Keeps the batch beyond the function that {@link Worker#exchange} has given it to. Release it
   * later; then exchange may use it again. Unless it is {@link #detach detached}, exchange answers
   * {@link Outcome#HOLDING} at once; as long as it is held, it sends nothing, and answers so where
   * it would wait.
   */
  public void keep() {
    owner.enter();
    if (address == 0) {
      throw empty();
    }
    isKept = true;
  }

  boolean isKept() {
    return isKept;
  }

  /** Whether it has rows that are not detached. */
  boolean isHeld() {
    return address != 0 && !isDetached;
  }

  /** The receiver that fills this batch. */
  ShuffleReceiver receiver() {
    if (receiver == null) {
      throw new FaroException(Code.WRONG_STATE, "the batch is a row buffer's: it has no shuffle");
    }
    return receiver;
  }

  /** The error for invalid bytes in this batch, which says where they come from. */
  FaroException damaged(String what) {
    return receiver == null
        ? new FaroException(Code.INVALID_ARGUMENT, "the bytes in a row buffer are damaged: " + what)
        : new FaroException(
            Code.PROTOCOL_ERROR,
            "a batch of worker " + receiver.worker(sender) + " is damaged: " + what);
  }

  int number() {
    return number;
  }

  /** The batch now has these rows, from this address on; {@code memory} is the caller's. */
  void place(
      long address, ByteBuffer memory, int bytes, int rowCount, int rowBytes, int sender) {
    this.address = address;
    this.memory = memory;
    isDetached = false;
    this.bytes = bytes;
    this.rowCount = rowCount;
    this.rowBytes = rowBytes;
    this.sender = sender;
    rowsLeft = rowCount;
    nextOffset = 0;
  }

  /** The memory was released. */
  void forget() {
    address = 0;
    memory = null;
    isKept = false;
    bytes = 0;
    rowCount = 0;
    rowsLeft = 0;
  }

  /**
   * The address of these bytes of the batch, for codecs that read more than a value or two and
   * check themselves that they stay within the row.
   */
  long address(int at, int count) {
    owner.enter();
    if (address == 0) {
      throw empty();
    }
    Objects.checkFromIndexSize(at, count, bytes);
    return address + at;
  }

  /**
   * The address of a number of {@code width} bytes in the batch. The compiler moves this check out
   * of loops, but not that of {@link #address}.
   */
  private long addressOf(int at, int width) {
    owner.enter();
    if (address == 0) {
      throw empty();
    }
    Objects.checkIndex(at, bytes - (width - 1));
    return address + at;
  }

  // Another process wrote the batch: no length in it is trusted.
  private void checkRest(int at, int wanted) {
    if (wanted < 0 || wanted > bytes - at) {
      throw damaged(
          "it ends within a row: " + wanted + " bytes where " + (bytes - at) + " are left");
    }
  }

  private FaroException empty() {
    receiver().shuffle().enter(); // closing empties its batches
    return new FaroException(
        Code.WRONG_STATE, "the batch is empty: it was released, or never filled");
  }

  @Override
  public String toString() {
    return "batch of " + rowCount + " rows, of the " + (receiver == null ? "row buffer" : receiver);
  }
}
