package io.faro.bench;

import io.faro.Frame;
import io.faro.LongSender;
import io.faro.Outcome;
import io.faro.Partition;
import io.faro.Shuffle;

/** By {@link RowsLevel#ONE}. */
final class OneRowPort extends RowPort {
  private final Shuffle shuffle;
  private final LongSender sender;
  private final Frame frame;
  private final Partition partition;

  OneRowPort(Shuffle shuffle, Partition partition) {
    this.shuffle = shuffle;
    this.partition = partition;
    sender = shuffle.longSender();
    frame = shuffle.newFrame();
  }

  @Override
  protected int trySend(long[] from, int begin, int end) {
    int receivers = shuffle.receiverCount();
    int at = begin;
    do {
      while (at < end && sender.tryPut(partition.receiverOf(from[at], receivers), from[at])) {
        at++;
      }
    } while (at < end
        && sender.trySend(partition.receiverOf(from[at], receivers), from[at]) == Outcome.DONE
        && ++at < end);
    return at - begin;
  }

  @Override
  protected Outcome tryReceive() {
    Outcome outcome = shuffle.tryPoll(frame);
    if (outcome == Outcome.DONE) {
      int rows = frame.rowCount();
      long[] to = begin(rows);
      for (int i = 0; i < rows; i++) {
        to[i] = frame.getLong(i * Long.BYTES);
      }
      frame.release();
    }
    return outcome;
  }
}
