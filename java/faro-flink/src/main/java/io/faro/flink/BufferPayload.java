package io.faro.flink;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.WritableByteChannel;
import org.apache.flink.core.memory.MemorySegmentFactory;
import org.apache.flink.runtime.io.network.buffer.Buffer;
import org.apache.flink.runtime.io.network.buffer.FileRegionBuffer;
import org.apache.flink.shaded.netty4.io.netty.buffer.AbstractByteBufAllocator;
import org.apache.flink.shaded.netty4.io.netty.buffer.ByteBuf;
import org.apache.flink.shaded.netty4.io.netty.buffer.ByteBufAllocator;
import org.apache.flink.shaded.netty4.io.netty.buffer.CompositeByteBuf;
import org.apache.flink.shaded.netty4.io.netty.buffer.UnpooledByteBufAllocator;

/**
 * A buffer of Flink's, of whatever kind: in memory, of several ones, or a region of a file. Used
 * again for one buffer after the other. Threads: one at a time.
 */
final class BufferPayload implements Payload {
  private static final ByteBufAllocator ALLOCATOR = new OfParts();

  private Buffer buffer;
  private ByteBuf bytes; // null: a region of a file
  private int begin;
  private int at;
  private int length;

  /** Takes the buffer over. */
  BufferPayload of(Buffer buffer) {
    this.buffer = buffer;
    at = 0;
    length = buffer.readableBytes();
    if (buffer instanceof FileRegionBuffer) {
      bytes = null;
      begin = 0;
    } else {
      buffer.setAllocator(ALLOCATOR);
      bytes = buffer.asByteBuf();
      begin = bytes.readerIndex();
    }
    return this;
  }

  @Override
  public int remaining() {
    return length - at;
  }

  @Override
  public void copyTo(ByteBuffer target) throws IOException {
    int count = target.remaining();
    if (bytes != null) {
      bytes.getBytes(begin + at, target);
    } else if (count == length) {
      // The file is read straight into the ring.
      ((FileRegionBuffer) buffer).readInto(MemorySegmentFactory.wrapOffHeapMemory(target.slice()));
    } else {
      copyRegion(target);
    }
    at += count;
  }

  private void copyRegion(ByteBuffer target) throws IOException {
    FileRegionBuffer region = (FileRegionBuffer) buffer;
    WritableByteChannel into = new IntoBuffer(target);
    for (int copied = 0; target.hasRemaining(); ) {
      int before = target.remaining();
      region.transferTo(into, at + copied);
      if (target.remaining() == before) {
        throw new IOException("the file of a partition ends before its buffer does");
      }
      copied += before - target.remaining();
    }
  }

  @Override
  public void release() {
    Buffer released = buffer;
    buffer = null;
    bytes = null;
    released.recycleBuffer();
  }

  /**
   * Makes the composites that stand for several buffers. They hold no memory of their own, and
   * nobody releases them: so none has a limit of parts. Those of Netty copy more than 16 into one
   * of their own, and release the parts then.
   */
  private static final class OfParts extends AbstractByteBufAllocator {
    @Override
    public CompositeByteBuf compositeDirectBuffer() {
      return new CompositeByteBuf(this, true, Integer.MAX_VALUE);
    }

    @Override
    protected ByteBuf newHeapBuffer(int initialCapacity, int maxCapacity) {
      return UnpooledByteBufAllocator.DEFAULT.heapBuffer(initialCapacity, maxCapacity);
    }

    @Override
    protected ByteBuf newDirectBuffer(int initialCapacity, int maxCapacity) {
      return UnpooledByteBufAllocator.DEFAULT.directBuffer(initialCapacity, maxCapacity);
    }

    @Override
    public boolean isDirectBufferPooled() {
      return false;
    }
  }

  /** A channel that takes as much as a buffer has room for. */
  private record IntoBuffer(ByteBuffer target) implements WritableByteChannel {
    @Override
    public int write(ByteBuffer source) {
      int count = Math.min(source.remaining(), target.remaining());
      ByteBuffer part = source.duplicate();
      part.limit(part.position() + count);
      target.put(part);
      source.position(source.position() + count);
      return count;
    }

    @Override
    public boolean isOpen() {
      return true;
    }

    @Override
    public void close() {}
  }
}
