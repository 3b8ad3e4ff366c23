package io.faro.flink;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.flink.runtime.event.AbstractEvent;
import org.apache.flink.runtime.event.TaskEvent;
import org.apache.flink.runtime.io.network.api.serialization.EventSerializer;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.shaded.netty4.io.netty.buffer.ByteBuf;
import org.apache.flink.shaded.netty4.io.netty.buffer.Unpooled;

/** How a task event travels: the partition, and the event as Flink serialises it. */
record TaskEvents(ResultPartitionID partition, TaskEvent event) {
  byte[] encoded() throws IOException {
    ByteBuf into = Unpooled.buffer(256);
    Identities.write(partition, into);
    into.writeBytes(EventSerializer.toSerializedEvent(event));
    return Identities.bytes(into);
  }

  static TaskEvents of(byte[] payload) throws IOException {
    ByteBuf from = Unpooled.wrappedBuffer(payload);
    ResultPartitionID partition = Identities.partition(from);
    ByteBuffer rest = ByteBuffer.wrap(payload, from.readerIndex(), from.readableBytes()).slice();
    AbstractEvent event =
        EventSerializer.fromSerializedEvent(rest, TaskEvents.class.getClassLoader());
    if (event instanceof TaskEvent taskEvent) {
      return new TaskEvents(partition, taskEvent);
    }
    throw new IOException(
        "The peer breaks Faro's protocol for Flink: " + event + " is no task event.");
  }
}
