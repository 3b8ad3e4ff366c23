package io.faro.sql.exec;

import io.faro.Outcome;
import io.faro.sql.plan.Exchange;
import org.apache.calcite.linq4j.Enumerable;
import org.apache.calcite.linq4j.Enumerator;

/**
 * One worker's end of an exchange, pulled row by row: gives what has come in, and as long as nothing has, sends
 * what its own input gives; it waits only when that is all sent (the polling process of the paper, §2.1).
 *
 * <p>Threads: the worker's. The shuffle is not closed here.
 */
final class ExchangedRows implements Enumerator<Object> {
  private static final int SENDS_PER_POLL = 256; // looking for rows is a native call, sending one is not

  private final Exchange exchange;
  private final RowShuffle shuffle;
  private final Enumerable<?> rows;
  private final Runnable whenInputEnds;
  private final boolean isOneColumn; // whose rows Calcite has as the column itself
  private final boolean isIgnored; // the input is worker 0's alone, and this is another
  private Enumerator<?> input; // null: not begun
  private boolean isSent; // all of the input
  private int sendsLeft; // before looking for rows
  private Object current;

  /** {@code worker}: the number of the one that pulls. */
  ExchangedRows(
      Exchange exchange, RowShuffle shuffle, int worker, Enumerable<?> rows, Runnable whenInputEnds) {
    this.exchange = exchange;
    this.shuffle = shuffle;
    this.rows = rows;
    this.whenInputEnds = whenInputEnds;
    isOneColumn = exchange.getRowType().getFieldCount() == 1;
    isIgnored = exchange.isOfSingleton() && worker != 0;
  }

  @Override
  public boolean moveNext() {
    try {
      while (true) {
        if (isSent || sendsLeft == 0) {
          Outcome polled = isSent ? shuffle.next() : shuffle.tryNext();
          if (polled == Outcome.DONE) {
            Object[] row = shuffle.get();
            current = isOneColumn ? row[0] : row;
            return true;
          }
          if (isSent) {
            if (polled != Outcome.END_OF_STREAM) {
              throw new IllegalStateException("stage " + exchange.stage() + " answers " + polled);
            }
            return false;
          }
          sendsLeft = SENDS_PER_POLL;
        }
        sendOne();
        sendsLeft--;
      }
    } catch (InterruptedException e) {
      throw interrupted(e);
    }
  }

  /** Sends what is left of the input, which others wait for, and needs no rows any more. */
  void complete() {
    try {
      shuffle.stop(); // also if all is sent: closing before the end of the stream would fail the query
      while (!isSent) {
        sendOne();
      }
    } catch (InterruptedException e) {
      throw interrupted(e);
    }
  }

  private void sendOne() throws InterruptedException {
    if (input == null) {
      input = rows.enumerator();
    }
    if (!input.moveNext()) {
      input.close();
      whenInputEnds.run();
      shuffle.finish();
      isSent = true;
      return;
    }
    if (isIgnored) {
      return;
    }
    Object value = input.current();
    Object[] row = exchange.fitting(value instanceof Object[] columns ? columns : new Object[] {value});
    shuffle.send(exchange.receiverOf(row, shuffle.receiverCount()), row);
  }

  private static IllegalStateException interrupted(InterruptedException e) {
    Thread.currentThread().interrupt();
    return new IllegalStateException("interrupted", e);
  }

  @Override
  public Object current() {
    return current;
  }

  @Override
  public void reset() {
    throw new UnsupportedOperationException("rows that were shuffled come once");
  }

  @Override
  public void close() {
    // The shuffle closes with the query.
  }
}
