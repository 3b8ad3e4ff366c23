package io.faro.bench;

import io.faro.Batch;
import io.faro.LongSender;
import io.faro.Outcome;
import io.faro.Partition;
import io.faro.Shuffle;
import io.faro.ShuffleReceiver;
import io.faro.Wait;

/** By {@link RowsLevel#ONE}. */
final class OneRowPort extends RowPort {
  private final LongSender sender;
  private final int receivers;
  private final ShuffleReceiver receiver;
  private final Batch batch;
  private final Partition partition;

  OneRowPort(Shuffle shuffle, Partition partition) {
    this.partition = partition;
    sender = shuffle.sender().longs();
    receivers = shuffle.sender().receiverCount();
    receiver = shuffle.receiver();
    batch = receiver.newBatch();
  }

  @Override
  protected int trySend(long[] from, int begin, int end) {
    int at = begin;
    do {
      while (at < end && sender.put(partition.receiverOf(from[at], receivers), from[at])) {
        at++;
      }
    } while (at < end
        && sender.send(partition.receiverOf(from[at], receivers), from[at], Wait.NONE) == Outcome.DONE
        && ++at < end);
    return at - begin;
  }

  @Override
  protected Outcome tryReceive() {
    Outcome outcome = receiver.receive(batch, Wait.NONE);
    if (outcome == Outcome.DONE) {
      int rows = batch.rowCount();
      long[] to = begin(rows);
      for (int i = 0; i < rows; i++) {
        to[i] = batch.getLong(i * Long.BYTES);
      }
      batch.release();
    }
    return outcome;
  }
}
