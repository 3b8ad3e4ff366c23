package io.faro.flink;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.util.Random;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataOutputView;
import org.apache.flink.core.memory.MemorySegment;
import org.apache.flink.core.memory.MemorySegmentFactory;
import org.apache.flink.runtime.event.AbstractEvent;
import org.apache.flink.runtime.event.RuntimeEvent;
import org.apache.flink.runtime.event.TaskEvent;
import org.apache.flink.runtime.io.network.api.serialization.EventSerializer;
import org.apache.flink.runtime.io.network.buffer.Buffer;
import org.apache.flink.runtime.io.network.buffer.Buffer.DataType;
import org.apache.flink.runtime.io.network.buffer.CompositeBuffer;
import org.apache.flink.runtime.io.network.buffer.FileRegionBuffer;
import org.apache.flink.runtime.io.network.buffer.FreeingBufferRecycler;
import org.apache.flink.runtime.io.network.buffer.NetworkBuffer;

/** Buffers and events with contents that are known. */
final class TestBuffers {
  private TestBuffers() {}

  static byte[] contents(int seed, int bytes) {
    byte[] contents = new byte[bytes];
    new Random(seed).nextBytes(contents);
    return contents;
  }

  static Buffer data(int seed, int bytes) {
    MemorySegment segment = MemorySegmentFactory.allocateUnpooledOffHeapMemory(Math.max(bytes, 64));
    segment.put(0, contents(seed, bytes));
    return new NetworkBuffer(segment, FreeingBufferRecycler.INSTANCE, DataType.DATA_BUFFER, bytes);
  }

  static Buffer event(AbstractEvent event, boolean hasPriority) throws IOException {
    return EventSerializer.toBuffer(event, hasPriority);
  }

  static Buffer region(FileChannel file, int seed, int bytes) throws IOException {
    long position = file.size();
    file.write(ByteBuffer.wrap(contents(seed, bytes)), position);
    return new FileRegionBuffer(file, position, bytes, DataType.DATA_BUFFER, false);
  }

  static Buffer composite(Buffer part) {
    CompositeBuffer whole = new CompositeBuffer(DataType.DATA_BUFFER, part.readableBytes(), false);
    whole.addPartialBuffer(part);
    return whole;
  }

  /** A FullyFilledBuffer of these; null in a Flink that has none. */
  static Buffer filled(Buffer... parts) throws ReflectiveOperationException {
    int bytes = 0;
    for (Buffer part : parts) {
      bytes += part.readableBytes();
    }
    Class<?> type;
    try {
      type = Class.forName("org.apache.flink.runtime.io.network.buffer.FullyFilledBuffer");
    } catch (ClassNotFoundException absent) {
      return null;
    }
    Object whole =
        type.getConstructor(DataType.class, int.class, boolean.class).newInstance(DataType.DATA_BUFFER, bytes, false);
    for (Buffer part : parts) {
      type.getMethod("addPartialBuffer", Buffer.class).invoke(whole, part);
    }
    return (Buffer) whole;
  }

  static byte[] bytes(Buffer buffer) {
    ByteBuffer readable = buffer.getNioBufferReadable();
    byte[] bytes = new byte[readable.remaining()];
    readable.get(bytes);
    buffer.recycleBuffer();
    return bytes;
  }

  /** An event of any size. */
  public static final class LargeEvent extends RuntimeEvent {
    byte[] payload = {};

    /** For Flink. */
    public LargeEvent() {}

    LargeEvent(int seed, int bytes) {
      payload = contents(seed, bytes);
    }

    @Override
    public void write(DataOutputView out) throws IOException {
      out.writeInt(payload.length);
      out.write(payload);
    }

    @Override
    public void read(DataInputView in) throws IOException {
      payload = new byte[in.readInt()];
      in.readFully(payload);
    }
  }

  /** A task event with a number. */
  public static final class NumberedEvent extends TaskEvent {
    int number;

    /** For Flink. */
    public NumberedEvent() {}

    NumberedEvent(int number) {
      this.number = number;
    }

    @Override
    public void write(DataOutputView out) throws IOException {
      out.writeInt(number);
    }

    @Override
    public void read(DataInputView in) throws IOException {
      number = in.readInt();
    }
  }
}
