package io.faro;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.Objects;

/**
 * Rows in the engine's own memory, written by the codecs that shuffles use: to spill them, to keep
 * them packed, or to transport them by other means. The bytes are those that would lie in a ring.
 * The caller keeps track of where each row begins and how long it is.
 *
 * <p>Nothing is allocated beyond what the codec allocates. Threads: one at a time; the first that
 * uses it owns it until {@link #releaseOwnership} or its end.
 */
public final class RowBuffer {
  /** The answer of {@link #tryWrite} for a row that may be too large for the space that is left. */
  public static final int NO_ROOM = -1;

  private final ByteBuffer memory;
  private final Owner owner = new Owner("the row buffer");
  private final RowWriter writer;
  private final Batch batch;

  private RowBuffer(ByteBuffer memory) {
    this.memory = memory;
    long address = NativeMemory.address(memory);
    writer = new RowWriter(owner, address);
    batch = new Batch(owner, address, memory.capacity());
  }

  /**
   * Uses the whole of a direct buffer, whatever its position, limit and byte order. The memory
   * remains the caller's.
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} if the buffer is not direct, or read-only
   */
  public static RowBuffer over(ByteBuffer memory) {
    Objects.requireNonNull(memory, "memory");
    if (!memory.isDirect() || memory.isReadOnly()) {
      throw new FaroException(
          Code.INVALID_ARGUMENT,
          "a row buffer needs direct memory that can be written, not " + memory);
    }
    return new RowBuffer(memory);
  }

  /** Its size in bytes. */
  public int capacity() {
    return memory.capacity();
  }

  /**
   * Writes an object at {@code at}.
   *
   * @return how many bytes it took; {@link #NO_ROOM}, and nothing was written, if its
   *     {@link RowCodec#maxBytes} exceed the space that is left
   * @throws FaroException {@link Code#INVALID_ARGUMENT} if {@code at} is negative, and what the
   *     codec throws
   */
  public <T> int tryWrite(RowCodec<T> codec, T object, int at) {
    Objects.requireNonNull(codec, "codec");
    if (at < 0) {
      throw new FaroException(Code.INVALID_ARGUMENT, "a row buffer has no offset " + at);
    }
    int bytes = codec.maxBytes(object);
    if (bytes > memory.capacity() - at) {
      return NO_ROOM;
    }
    try {
      writer.claimAt(at, bytes);
      return codec.write(object, writer);
    } finally {
      Reference.reachabilityFence(memory); // of which only the address is used
    }
  }

  /**
   * Reads the object that lies there.
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} if there is no row of this codec: it lies
   *     outside the buffer, its length is not the codec's, or a length in it is wrong. The buffer
   *     can still be used.
   */
  public <T> T read(RowCodec<T> codec, int at, int bytes) {
    Objects.requireNonNull(codec, "codec");
    int width = codec.rowBytes();
    if (at < 0 || bytes < 0 || bytes > memory.capacity() - at || (width != 0 && bytes != width)) {
      throw noRow(at, bytes, width, null);
    }
    try {
      return codec.read(batch, at, bytes);
    } catch (IndexOutOfBoundsException | NegativeArraySizeException damaged) {
      throw noRow(at, bytes, width, damaged);
    } finally {
      Reference.reachabilityFence(memory);
    }
  }

  private FaroException noRow(int at, int bytes, int width, RuntimeException cause) {
    String why =
        cause != null
            ? cause.getMessage()
            : "the buffer has " + memory.capacity()
                + (width == 0 ? "" : ", a row of the codec " + width);
    return new FaroException(
        Code.INVALID_ARGUMENT,
        "no row of the codec lies at " + at + " with " + bytes + " bytes: " + why,
        cause);
  }

  /** Releases the calling thread's ownership. The next thread that uses it takes it. */
  public void releaseOwnership() {
    owner.releaseOwnership();
  }

  @Override
  public String toString() {
    return "row buffer of " + capacity() + " bytes";
  }
}
