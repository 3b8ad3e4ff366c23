package io.faro.sql.exec;

import org.apache.calcite.linq4j.Enumerable;
import org.apache.calcite.linq4j.Enumerator;

/**
 * One worker's end of a stage, pulled row by row: gives what has come in, and what its own input gives it hands on.
 *
 * <p>Threads: the worker's. What carries the rows is not closed here.
 */
abstract class StageRows implements Enumerator<Object> {
  private final Enumerable<?> rows;
  private final Runnable whenInputEnds;
  private final boolean isOneColumn; // whose rows Calcite has as the column itself
  private Enumerator<?> input; // null: not begun
  private boolean isGiven;
  private Object current;

  /** {@code columns}: how many the rows have that come in. */
  StageRows(Enumerable<?> rows, int columns, Runnable whenInputEnds) {
    this.rows = rows;
    this.whenInputEnds = whenInputEnds;
    isOneColumn = columns == 1;
  }

  /** Hands on rows of the input, or waits for those of others; null: there are no more. */
  abstract Object[] pull() throws InterruptedException;

  /** Hands on a row of the input. */
  abstract void give(Object[] row) throws InterruptedException;

  /** There are no more. */
  abstract void finish() throws InterruptedException;

  /** No row is needed any more. */
  abstract void stop();

  /** Whether all of the input was handed on. */
  final boolean isGiven() {
    return isGiven;
  }

  final void giveOne() throws InterruptedException {
    if (input == null) {
      input = rows.enumerator();
    }
    if (input.moveNext()) {
      Object value = input.current();
      give(value instanceof Object[] columns ? columns : new Object[] {value});
      return;
    }
    input.close();
    whenInputEnds.run();
    finish();
    isGiven = true;
  }

  @Override
  public final boolean moveNext() {
    try {
      Object[] row = pull();
      current = row != null && isOneColumn ? row[0] : row;
      return row != null;
    } catch (InterruptedException e) {
      throw interrupted(e);
    }
  }

  /** Hands on what is left of the input, which others wait for, and needs no rows any more. */
  final void complete() {
    try {
      stop(); // also if all is given: closing before the end of the stream would fail the query
      while (!isGiven) {
        giveOne();
      }
    } catch (InterruptedException e) {
      throw interrupted(e);
    }
  }

  private static IllegalStateException interrupted(InterruptedException e) {
    Thread.currentThread().interrupt();
    return new IllegalStateException("interrupted", e);
  }

  @Override
  public final Object current() {
    return current;
  }

  @Override
  public final void reset() {
    throw new UnsupportedOperationException("rows that were shuffled come once");
  }

  @Override
  public final void close() {
    // What carries them closes with the query.
  }
}
