package io.faro.sql.exec;

import io.faro.Outcome;
import io.faro.sql.plan.Exchange;
import org.apache.calcite.linq4j.Enumerable;

/**
 * One worker's end of an exchange: as long as no rows have come in it sends what its own input gives, and it waits
 * only when that is all sent (the polling process of the paper, §2.1).
 */
final class ExchangedRows extends StageRows {
  private static final int SENDS_PER_POLL = 256; // looking for rows is a native call, sending one is not

  private final Exchange exchange;
  private final RowShuffle shuffle;
  private final boolean isIgnored; // the input is worker 0's alone, and this is another
  private int sendsLeft; // before looking for rows

  /** {@code worker}: the number of the one that pulls. */
  ExchangedRows(
      Exchange exchange, RowShuffle shuffle, int worker, Enumerable<?> rows, Runnable whenInputEnds) {
    super(rows, exchange.getRowType().getFieldCount(), whenInputEnds);
    this.exchange = exchange;
    this.shuffle = shuffle;
    isIgnored = exchange.isOfSingleton() && worker != 0;
  }

  @Override
  Object[] pull() throws InterruptedException {
    while (true) {
      if (isGiven() || sendsLeft == 0) {
        Outcome polled = isGiven() ? shuffle.next() : shuffle.tryNext();
        if (polled == Outcome.DONE) {
          return shuffle.get();
        }
        if (isGiven()) {
          if (polled != Outcome.END_OF_STREAM) {
            throw new IllegalStateException("stage " + exchange.stage() + " answers " + polled);
          }
          return null;
        }
        sendsLeft = SENDS_PER_POLL;
      }
      giveOne();
      sendsLeft--;
    }
  }

  @Override
  void give(Object[] row) throws InterruptedException {
    if (isIgnored) {
      return;
    }
    Object[] fitting = exchange.fitting(row);
    shuffle.send(exchange.receiverOf(fitting, shuffle.receiverCount()), fitting);
  }

  @Override
  void finish() throws InterruptedException {
    shuffle.finish();
  }

  @Override
  void stop() {
    shuffle.stop();
  }
}
