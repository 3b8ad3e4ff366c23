package io.faro.flink;

import org.apache.flink.runtime.executiongraph.ExecutionAttemptID;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.runtime.io.network.partition.ResultSubpartitionIndexSet;
import org.apache.flink.runtime.io.network.partition.consumer.InputChannelID;
import org.apache.flink.runtime.jobgraph.IntermediateResultPartitionID;
import org.apache.flink.shaded.netty4.io.netty.buffer.ByteBuf;
import org.apache.flink.shaded.netty4.io.netty.buffer.Unpooled;

/** How Flink's identities travel: as they write themselves. */
final class Identities {
  private Identities() {}

  /** What a REQUEST asks for. */
  record Request(
      ResultPartitionID partition,
      ResultSubpartitionIndexSet subpartitions,
      InputChannelID receiver) {}

  static byte[] of(Request request) {
    ByteBuf into = Unpooled.buffer(96);
    write(request.partition, into);
    request.receiver.writeTo(into);
    request.subpartitions.writeTo(into);
    return bytes(into);
  }

  static Request request(byte[] payload) {
    ByteBuf from = Unpooled.wrappedBuffer(payload);
    ResultPartitionID partition = partition(from);
    InputChannelID receiver = InputChannelID.fromByteBuf(from);
    return new Request(partition, ResultSubpartitionIndexSet.fromByteBuf(from), receiver);
  }

  static void write(ResultPartitionID partition, ByteBuf into) {
    partition.getPartitionId().writeTo(into);
    partition.getProducerId().writeTo(into);
  }

  static ResultPartitionID partition(ByteBuf from) {
    IntermediateResultPartitionID partition = IntermediateResultPartitionID.fromByteBuf(from);
    return new ResultPartitionID(partition, ExecutionAttemptID.fromByteBuf(from));
  }

  /** What was written. */
  static byte[] bytes(ByteBuf written) {
    byte[] bytes = new byte[written.readableBytes()];
    written.readBytes(bytes);
    return bytes;
  }
}
