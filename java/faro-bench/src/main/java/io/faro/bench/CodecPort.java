package io.faro.bench;

import io.faro.ObjectReceiver;
import io.faro.ObjectSender;
import io.faro.Outcome;
import io.faro.Partition;
import io.faro.RowCodecs;
import io.faro.Shuffle;

/** By {@link RowsLevel#CODEC}. */
final class CodecPort extends RowPort {
  private final int receivers;
  private final ObjectSender<Long> sender;
  private final ObjectReceiver<Long> receiver;
  private final Partition partition;

  CodecPort(Shuffle shuffle, Partition partition) {
    this.partition = partition;
    receivers = shuffle.receiverCount();
    sender = shuffle.sender(RowCodecs.LONG);
    receiver = shuffle.receiver(RowCodecs.LONG);
  }

  @Override
  protected int trySend(long[] from, int begin, int end) {
    int at = begin;
    while (at < end
        && sender.trySend(partition.receiverOf(from[at], receivers), from[at]) == Outcome.DONE) {
      at++;
    }
    return at - begin;
  }

  @Override
  protected Outcome tryReceive() {
    clear();
    return receiver.tryDrain(this::add);
  }
}
