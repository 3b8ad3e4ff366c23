package io.faro.bench;

import io.faro.ObjectReceiver;
import io.faro.ObjectSender;
import io.faro.Outcome;
import io.faro.Partition;
import io.faro.RowCodecs;
import io.faro.Shuffle;
import io.faro.Wait;
import java.util.AbstractList;
import java.util.List;

/** By {@link RowsLevel#CODEC}. */
final class CodecPort extends RowPort {
  private final int receivers;
  private final ObjectSender<Long> sender;
  private final ObjectReceiver<Long> receiver;
  private final Partition partition;

  CodecPort(Shuffle shuffle, Partition partition) {
    this.partition = partition;
    receivers = shuffle.sender().receiverCount();
    sender = shuffle.sender().objects(RowCodecs.LONG);
    receiver = shuffle.receiver().objects(RowCodecs.LONG);
  }

  @Override
  protected int trySend(long[] from, int begin, int end) {
    List<Long> rows =
        new AbstractList<>() {
          @Override
          public Long get(int index) {
            return from[index];
          }

          @Override
          public int size() {
            return end;
          }
        };
    return sender.sendAll(rows, begin, end, row -> partition.receiverOf(row, receivers), Wait.NONE);
  }

  @Override
  protected Outcome tryReceive() {
    clear();
    return receiver.drain(this::add, Wait.NONE);
  }
}
