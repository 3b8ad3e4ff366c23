package io.faro;

import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import java.util.function.IntFunction;

/**
 * Memory of the caller's for rows that are larger than a frame, which native code asks for while it
 * receives. Buffers stay reachable until their rows are complete.
 *
 * <p>Threads: those of the worker.
 */
final class RowMemory {
  private static final int ALIGNMENT = 64;

  private final Owner owner; // of the worker
  private final Map<Long, ByteBuffer> begun = new HashMap<>(); // by the address of the row
  private IntFunction<ByteBuffer> allocate; // of the call that was made last

  RowMemory(Owner owner) {
    this.owner = owner;
  }

  /** From now on memory comes from there. */
  RowMemory of(IntFunction<ByteBuffer> allocate) {
    this.allocate = allocate;
    return this;
  }

  /** Called by native code: the address of memory for a row of {@code bytes} bytes. */
  long take(int bytes) {
    owner.lendTo("is receiving, and its function `allocate` must not use it");
    ByteBuffer memory;
    try {
      memory = allocate.apply(bytes);
    } finally {
      owner.giveBackTo(Thread.currentThread());
    }
    long address = addressOf(memory, bytes);
    begun.put(address, memory);
    return address;
  }

  private static long addressOf(ByteBuffer memory, int bytes) {
    if (memory == null) {
      throw refused("no memory for a row of " + bytes + " bytes");
    }
    if (!memory.isDirect()) {
      throw refused("a buffer that lies in the Java heap, and is not direct");
    }
    if (memory.isReadOnly()) {
      throw refused("a buffer that is only to be read");
    }
    if (memory.remaining() < bytes) {
      throw refused(memory.remaining() + " bytes for a row of " + bytes + " bytes");
    }
    long address = NativeMemory.address(memory) + memory.position();
    if (address % ALIGNMENT != 0) {
      throw refused("memory that is not aligned to " + ALIGNMENT + " bytes");
    }
    return address;
  }

  private static FaroException refused(String what) {
    return new FaroException(Code.INVALID_ARGUMENT, "allocate gave " + what);
  }

  /** The row at this address is complete: the buffer in which it lies, or null. */
  ByteBuffer handOut(long address) {
    return begun.isEmpty() ? null : begun.remove(address); // which allocates
  }
}
