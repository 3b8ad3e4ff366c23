package io.faro.sql.exec;

import org.apache.calcite.linq4j.Enumerator;

/** The rows of another enumerator, with something to be done before each batch of them. */
final class CheckedRows<T> implements Enumerator<T> {
  private final Enumerator<T> rows;
  private final int rowsPerCheck;
  private final Runnable check;
  private int rowsLeft;

  CheckedRows(Enumerator<T> rows, int rowsPerCheck, Runnable check) {
    this.rows = rows;
    this.rowsPerCheck = rowsPerCheck;
    this.check = check;
  }

  @Override
  public boolean moveNext() {
    if (rowsLeft == 0) {
      check.run();
      rowsLeft = rowsPerCheck;
    }
    rowsLeft--;
    return rows.moveNext();
  }

  @Override
  public T current() {
    return rows.current();
  }

  @Override
  public void reset() {
    rows.reset();
  }

  @Override
  public void close() {
    rows.close();
  }
}
