package io.faro;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.Objects;

/**
 * A batch of events, which {@link Poller#poll} fills again and again. Native code writes the events
 * to memory of this object, from which these methods read: a call per batch, and none per event.
 *
 * <p>Threads: those of the poller that fills it. What its methods say holds until the next poll
 * with this object; {@link #buffer}, offset and length of a frame until that frame is released.
 */
public final class ChannelEvents {
  /** What an event says. */
  public enum Kind {
    /** There are rings: claims and frames from now on. */
    OPENED,
    /** The peer has sent a frame, which stays in place until it is released. */
    FRAME,
    /** A claim that found no space may find it now. */
    ROOM,
    /** The last event of a channel; {@link Poller#failure} says why. */
    CLOSED;

    /** The number that native code writes; a test compares the two. */
    int number() {
      return ordinal();
    }
  }

  private static final Kind[] KINDS = Kind.values();

  private final int capacity;
  private final ByteBuffer memory; // of the events
  private final long address;
  private Poller poller; // that has filled it; null: none
  private int count;

  /**
   * @param capacity most events of a poll
   * @throws FaroException {@link Code#INVALID_ARGUMENT} if it is not in 1 … 65536
   */
  public ChannelEvents(int capacity) {
    if (capacity < 1 || capacity > 1 << 16) {
      throw new FaroException(
          Code.INVALID_ARGUMENT, "a capacity of " + capacity + " events is not in 1 … 65536");
    }
    NativeLibrary.ensureLoaded();
    this.capacity = capacity;
    memory = ByteBuffer.allocateDirect(capacity * NativePoller.Layout.EVENT_BYTES);
    address = NativeMemory.address(memory);
  }

  /** Most events of a poll. */
  public int capacity() {
    return capacity;
  }

  /** How many events the last poll has found. */
  public int count() {
    return count;
  }

  /** The channel of event {@code i}, 0 … {@link #count} - 1, as all that follows. */
  public long channel(int i) {
    return (long) intAt(i, NativePoller.Layout.EVENT_GENERATION) << 32
        | intAt(i, NativePoller.Layout.EVENT_INDEX);
  }

  /** What it says. */
  public Kind kind(int i) {
    return KINDS[intAt(i, NativePoller.Layout.EVENT_KIND)];
  }

  /** The number of a frame, for {@link Poller#release(long, int)}. */
  public int token(int i) {
    return intAt(i, NativePoller.Layout.EVENT_TOKEN);
  }

  /**
   * The ring that a frame lies in, as one read-only direct buffer: always the same object for a
   * channel, so use absolute methods or a duplicate. Its byte order is big-endian, as of any new
   * buffer. A peer on the same machine could change the bytes while they are read. When the channel
   * has closed and its frames are released there is no memory behind it any more: an access then
   * throws an {@link IndexOutOfBoundsException}. One by a slice or a duplicate is answered as
   * behind the end of a mapped file: an {@link InternalError}, at once or soon after.
   *
   * @throws FaroException {@link Code#WRONG_STATE} if the event is no frame; {@link Code#CLOSED} if
   *     the channel has closed and all its frames were released
   */
  public ByteBuffer buffer(int i) {
    return rings(i).incoming();
  }

  /** Where a frame begins in {@link #buffer}, which throws the same. */
  public int offset(int i) {
    return rings(i).incomingOffset(longAt(i, NativePoller.Layout.EVENT_DATA));
  }

  /** Length of a frame in bytes; may be 0. */
  public int length(int i) {
    return (int) longAt(i, NativePoller.Layout.EVENT_LENGTH);
  }

  // The memory is given back when nobody refers to this object any more: not before it was read.
  private int intAt(int i, int offset) {
    int value = NativeMemory.getInt(event(i) + offset);
    Reference.reachabilityFence(this);
    return value;
  }

  private long longAt(int i, int offset) {
    long value = NativeMemory.getLong(event(i) + offset);
    Reference.reachabilityFence(this);
    return value;
  }

  /** Where native code writes. */
  long address() {
    return address;
  }

  /** That many events were written. */
  void filled(Poller by, int events) {
    poller = by;
    count = events;
    for (int i = 0; i < count; i++) {
      if (kind(i) == Kind.CLOSED) {
        poller.closed(channel(i));
      }
    }
  }

  /** What it says is of that poller; it may say nothing. */
  void expectFilledBy(Poller expected) {
    if (count > 0 && poller != expected) {
      throw new FaroException(Code.WRONG_STATE, "these events are of another poller");
    }
  }

  /** It is being filled again: it says nothing until then. */
  void empty() {
    count = 0;
  }

  private RingBuffers rings(int i) {
    if (kind(i) != Kind.FRAME) {
      throw new FaroException(Code.WRONG_STATE, "event " + i + " is " + kind(i) + ", and no FRAME");
    }
    return poller.rings(channel(i));
  }

  private long event(int i) {
    return address + (long) Objects.checkIndex(i, count) * NativePoller.Layout.EVENT_BYTES;
  }

  @Override
  public String toString() {
    return count + " events of at most " + capacity;
  }
}
