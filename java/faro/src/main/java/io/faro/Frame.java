package io.faro;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.util.Objects;

/**
 * Rows that were received, where they lie: in the ring, or in memory when they had been set aside.
 * Polled into by {@link Shuffle#tryPoll} and used again for each poll; nothing is allocated per frame,
 * but for rows of more than 64 KiB that had been set aside.
 *
 * <p>Held frames keep their sender's ring from moving on: release soon. A worker that holds some
 * never waits: what would wait answers {@link Outcome#HOLDING}. Reading a frame that was released
 * throws {@link Code#WRONG_STATE}; one whose shuffle was closed, {@link Code#CLOSED}. A frame that is held while the
 * session is closed can still be read, until its shuffle is closed. Numbers are little-endian and need
 * no alignment. A peer on the same machine could change the bytes while they are read: load a length
 * once.
 *
 * <p>Threads: those of its worker.
 */
public final class Frame implements AutoCloseable {
  /** Rows of up to so many bytes that were set aside are copied: all but those of huge rows and rings. */
  static final int ASIDE_BYTES = 64 * 1024;

  private static final int LENGTH = Integer.BYTES; // in front of a row of variable width

  private final Shuffle shuffle; // null: a row buffer's
  private final Owner owner;
  private final int number;

  private final byte[] text = new byte[1024]; // for the bytes of a string
  private ByteBuffer aside; // for rows that were set aside; null: none yet
  private LongBuffer asideLongs; // the same memory

  private ByteBuffer memory; // null: empty
  private LongBuffer longs; // the same memory
  private int offset; // of the first row in memory
  private int bytes;
  private int rowCount;
  private int rowBytes; // 0: a length in front of each row
  private int sender;

  // Of nextRow: where the row it stands on lies, and how many follow.
  private int rowOffset;
  private int rowLength;
  private int rowsLeft;
  private int nextOffset;
  private int mark; // negative: the row is an object of a reference lane

  Frame(Shuffle shuffle, int number) {
    this.shuffle = shuffle;
    owner = shuffle.owner();
    this.number = number;
  }

  /** For {@link RowBuffer}: all of this memory; only {@code get…}. */
  Frame(Owner owner, ByteBuffer memory) {
    shuffle = null;
    this.owner = owner;
    number = 0;
    describe(memory.capacity(), 0, 0, 0);
    place(memory, null, 0);
  }

  /** Whether it holds no rows. */
  public boolean isEmpty() {
    return memory == null;
  }

  /** Number of the worker that sent the rows. */
  public int sender() {
    return sender;
  }

  /** Rows in the frame. */
  public int rowCount() {
    return rowCount;
  }

  /** Bytes of all rows, with their lengths if they have one each. */
  public int bytes() {
    return bytes;
  }

  /** Reads at an offset from the beginning of the frame, as all {@code get…}. */
  public byte getByte(int at) {
    int index = index(at, Byte.BYTES);
    return memory.get(index);
  }

  /** Reads two bytes. */
  public short getShort(int at) {
    int index = index(at, Short.BYTES);
    return memory.getShort(index);
  }

  /** Reads four bytes. */
  public int getInt(int at) {
    int index = index(at, Integer.BYTES);
    return memory.getInt(index);
  }

  /** Reads eight bytes. */
  public long getLong(int at) {
    int index = index(at, Long.BYTES);
    return memory.getLong(index);
  }

  /** Reads eight bytes. */
  public double getDouble(int at) {
    int index = index(at, Double.BYTES);
    return memory.getDouble(index);
  }

  /** Copies bytes into an array. */
  public void getBytes(int at, byte[] to, int begin, int count) {
    int index = index(at, count);
    memory.get(index, to, begin, count);
  }

  /** What {@link Utf8} has written in {@code count} bytes; allocates the string alone, unless it is long. */
  String getString(int at, int count) {
    return string(index(at, count), count);
  }

  /** The same from an index of {@link #memory} on. */
  String string(int index, int count) {
    byte[] utf8 = count <= text.length ? text : new byte[count];
    memory.get(index, utf8, 0, count);
    return Utf8.decode(utf8, count);
  }

  /** Where the rows are; little-endian. */
  ByteBuffer memory() {
    return memory;
  }

  /** Copies {@code count} rows that are one long each, from row {@code first} on, into an array. */
  public void getLongs(int first, long[] to, int begin, int count) {
    Objects.checkFromIndexSize(begin, count, to.length);
    Objects.checkFromIndexSize(first, count, rowCount);
    if (rowBytes != Long.BYTES) {
      throw new FaroException(Code.INVALID_ARGUMENT, "rows of " + rowBytes + " bytes, not 8");
    }
    int index = index(first * Long.BYTES, count * Long.BYTES);
    longs.get(index / Long.BYTES, to, begin, count); // frames begin at multiples of 16
  }

  /**
   * Steps to the next row, the first one at first; false after the last.
   *
   * <p>{@link #rowOffset} and {@link #rowLength} then say where it lies.
   *
   * @throws FaroException {@link Code#WRONG_STATE} if the row came by reference (see {@link
   *     RowCodec#immutable}); only an {@link ObjectReceiver} finds the object; {@link Code#PROTOCOL_ERROR}
   *     if the sender's lengths do not fit its frame
   */
  public boolean nextRow() {
    boolean found = step();
    if (found && mark < 0) {
      throw new FaroException(
          Code.WRONG_STATE, "the row is an object by reference: receive it by an ObjectReceiver");
    }
    return found;
  }

  /** The same, also to a row that is an object: {@link #mark} tells. */
  boolean step() {
    if (rowsLeft == 0) {
      return false;
    }
    int at = nextOffset;
    int length = rowBytes;
    mark = 0;
    if (rowBytes == 0) {
      checkRest(at, LENGTH);
      length = getInt(at);
      at += LENGTH;
      if (length < 0) {
        mark = length;
        length = 0;
      }
    }
    checkRest(at, length);
    index(at, length);
    rowOffset = at;
    rowLength = length;
    nextOffset = at + length;
    rowsLeft--;
    return true;
  }

  /** Rows that {@link #step} has not come to. */
  int rowsLeft() {
    return rowsLeft;
  }

  /** Width of all rows; 0: each has a length. */
  int rowBytes() {
    return rowBytes;
  }

  /** Where the row begins that {@link #step} comes to next. */
  int nextOffset() {
    return nextOffset;
  }

  /** {@link #step} goes on from here, with so many rows. Only for rows of one width. */
  void standBefore(int offset, int rows) {
    nextOffset = offset;
    rowsLeft = rows;
  }

  /** The mark of the row that {@link #step} has stepped to; 0 if it is bytes. */
  int mark() {
    return mark;
  }

  /** Offset in the frame of the row that {@link #nextRow} has stepped to. */
  public int rowOffset() {
    return rowOffset;
  }

  /** Its length in bytes. */
  public int rowLength() {
    return rowLength;
  }

  /** Gives the memory back; the frame is empty then. Idempotent. */
  public void release() {
    if (memory != null) {
      Shuffle source = shuffle();
      forget();
      source.release(this);
    }
  }

  /** As {@link #release}. */
  @Override
  public void close() {
    release();
  }

  /**
   * Copies the rows aside, so that the ring can move on while they are kept; for merging.
   *
   * @throws FaroException {@link Code#OVERFLOW_EXHAUSTED}; the frame then stays as it is
   */
  public void detach() {
    if (memory != null) {
      shuffle().detach(this);
    }
  }

  /** Whose rows it gets. */
  Shuffle shuffle() {
    if (shuffle == null) {
      throw new FaroException(Code.WRONG_STATE, "the frame is a row buffer's: it has no shuffle");
    }
    return shuffle;
  }

  /** For whoever finds that bytes of this frame are not what they should be: the error that says where they are from. */
  FaroException damaged(String what) {
    return shuffle == null
        ? new FaroException(Code.INVALID_ARGUMENT, "the bytes in a row buffer are damaged: " + what)
        : new FaroException(Code.PROTOCOL_ERROR, "a frame of worker " + sender + " is damaged: " + what);
  }

  int number() {
    return number;
  }

  void describe(int bytes, int rowCount, int rowBytes, int sender) {
    this.bytes = bytes;
    this.rowCount = rowCount;
    this.rowBytes = rowBytes;
    this.sender = sender;
    rowsLeft = rowCount;
    nextOffset = 0;
  }

  /** Memory for rows that were set aside, {@link #ASIDE_BYTES} of it. */
  ByteBuffer aside() {
    if (aside == null) {
      aside = ByteBuffer.allocateDirect(ASIDE_BYTES).order(ByteOrder.LITTLE_ENDIAN);
      asideLongs = aside.asLongBuffer();
    }
    return aside;
  }

  LongBuffer asideLongs() {
    return asideLongs;
  }

  /** Where the rows lie, or now lie. */
  void place(ByteBuffer memory, LongBuffer longs, int offset) {
    this.memory = memory;
    this.longs = longs;
    this.offset = offset;
  }

  /** The memory is no longer ours. */
  void forget() {
    memory = null;
    longs = null;
    bytes = 0;
    rowCount = 0;
    rowsLeft = 0;
  }

  /**
   * Where in {@link #memory} these bytes of the frame are: for codecs that get more than a value or two, and check for
   * themselves that they stay within the row.
   */
  int index(int at, int count) {
    owner.enter();
    if (memory == null) {
      throw empty();
    }
    Objects.checkFromIndexSize(at, count, bytes);
    return offset + at;
  }

  // Another process wrote the frame: no length in it is trusted.
  private void checkRest(int at, int wanted) {
    if (wanted > bytes - at) {
      throw damaged("it ends within a row: " + wanted + " bytes where " + (bytes - at) + " are left");
    }
  }

  private FaroException empty() {
    shuffle().enter(); // closing empties its frames
    return new FaroException(Code.WRONG_STATE, "the frame is empty: it was released, or never filled");
  }
}
