package io.faro.bench;

import io.faro.Frame;
import io.faro.LongSender;
import io.faro.Outcome;
import io.faro.Partition;
import io.faro.Shuffle;

/** By {@link RowsLevel#MANY}. */
final class ManyRowsPort extends RowPort {
  private final Shuffle shuffle;
  private final LongSender sender;
  private final Frame frame;
  private final Partition partition;

  ManyRowsPort(Shuffle shuffle, Partition partition) {
    this.shuffle = shuffle;
    this.partition = partition;
    sender = shuffle.longSender();
    frame = shuffle.newFrame();
  }

  @Override
  protected int trySend(long[] from, int begin, int end) {
    return sender.trySendAll(from, begin, end, partition);
  }

  @Override
  protected Outcome tryReceive() {
    Outcome outcome = shuffle.tryPoll(frame);
    if (outcome == Outcome.DONE) {
      int rows = frame.rowCount();
      frame.getLongs(0, begin(rows), 0, rows);
      frame.release();
    }
    return outcome;
  }
}
