package io.faro.flink;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.flink.core.memory.MemorySegment;
import org.apache.flink.core.memory.MemorySegmentFactory;
import org.apache.flink.runtime.io.network.buffer.Buffer;
import org.apache.flink.runtime.io.network.buffer.BufferRecycler;
import org.apache.flink.runtime.io.network.buffer.NetworkBuffer;

/**
 * Buffers that Flink sends as one (FullyFilledBuffer): they cost one credit, and have a sequence
 * number each. Flink 1.20 has none, so the class is looked up by its name.
 */
final class PartialBuffers {
  private static final Class<?> TYPE = type();
  private static final MethodHandle PARTS = parts();

  private PartialBuffers() {}

  private static Class<?> type() {
    try {
      return Class.forName("org.apache.flink.runtime.io.network.buffer.FullyFilledBuffer");
    } catch (ClassNotFoundException absent) {
      return null;
    }
  }

  private static MethodHandle parts() {
    if (TYPE == null) {
      return null;
    }
    try {
      return MethodHandles.publicLookup()
          .findVirtual(TYPE, "getPartialBuffers", MethodType.methodType(List.class))
          .asType(MethodType.methodType(List.class, Buffer.class));
    } catch (ReflectiveOperationException changed) {
      throw new IllegalStateException("This version of Flink is not one that Faro knows.", changed);
    }
  }

  static boolean isOf(Buffer buffer) {
    return TYPE != null && TYPE.isInstance(buffer);
  }

  /** The lengths of the parts, as they travel. */
  @SuppressWarnings("unchecked")
  static byte[] lengths(Buffer buffer) {
    List<Buffer> parts;
    try {
      parts = (List<Buffer>) PARTS.invokeExact(buffer);
    } catch (RuntimeException | Error unchecked) {
      throw unchecked;
    } catch (Throwable checked) {
      throw new IllegalStateException(checked);
    }
    ByteBuffer lengths =
        ByteBuffer.allocate(Integer.BYTES * parts.size()).order(ByteOrder.LITTLE_ENDIAN);
    for (Buffer part : parts) {
      lengths.putInt(part.readableBytes());
    }
    return lengths.array();
  }

  /** The lengths that have travelled. */
  static int[] lengths(byte[] payload) {
    int[] lengths = new int[payload.length / Integer.BYTES];
    ByteBuffer.wrap(payload).order(ByteOrder.LITTLE_ENDIAN).asIntBuffer().get(lengths);
    return lengths;
  }

  /**
   * The buffers in {@code whole}, one after the other. They do not share its count of references,
   * as slices would: the pool recycles buffers by their segments. So each has a segment of its own
   * around a part of the memory, and {@code whole} is recycled when the last of them is.
   */
  static Buffer[] split(Buffer whole, int[] lengths) {
    long sum = 0;
    for (int length : lengths) {
      sum += length < 0 ? Integer.MAX_VALUE : length;
    }
    if (lengths.length == 0 || sum != whole.getSize()) {
      throw new IllegalStateException(
          lengths.length + " buffers of " + sum + " bytes in one of " + whole.getSize());
    }
    AtomicInteger left = new AtomicInteger(lengths.length);
    BufferRecycler recycler =
        segment -> {
          if (left.decrementAndGet() == 0) {
            whole.recycleBuffer();
          }
        };
    Buffer[] parts = new Buffer[lengths.length];
    for (int i = 0, at = 0; i < lengths.length; at += lengths[i++]) {
      parts[i] =
          new NetworkBuffer(
              segment(whole.getNioBuffer(at, lengths[i])),
              recycler,
              whole.getDataType(),
              whole.isCompressed(),
              lengths[i]);
    }
    return parts;
  }

  private static MemorySegment segment(ByteBuffer memory) {
    if (memory.isDirect()) {
      return MemorySegmentFactory.wrapOffHeapMemory(memory);
    }
    byte[] copy = new byte[memory.remaining()];
    memory.get(copy);
    return MemorySegmentFactory.wrap(copy);
  }
}
