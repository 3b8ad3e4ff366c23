package io.faro.bench;

import io.faro.Batch;
import io.faro.LongSender;
import io.faro.Outcome;
import io.faro.Partition;
import io.faro.Shuffle;
import io.faro.ShuffleReceiver;
import io.faro.Wait;

/** By {@link RowsLevel#MANY}. */
final class ManyRowsPort extends RowPort {
  private final LongSender sender;
  private final ShuffleReceiver receiver;
  private final Batch batch;
  private final Partition partition;

  ManyRowsPort(Shuffle shuffle, Partition partition) {
    this.partition = partition;
    sender = shuffle.sender().longs();
    receiver = shuffle.receiver();
    batch = receiver.newBatch();
  }

  @Override
  protected int trySend(long[] from, int begin, int end) {
    return sender.sendAll(from, begin, end, partition, Wait.NONE);
  }

  @Override
  protected Outcome tryReceive() {
    Outcome outcome = receiver.receive(batch, Wait.NONE);
    if (outcome == Outcome.DONE) {
      int rows = batch.rowCount();
      batch.getLongs(0, begin(rows), 0, rows);
      batch.release();
    }
    return outcome;
  }
}
