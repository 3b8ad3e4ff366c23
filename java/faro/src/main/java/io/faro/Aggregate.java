package io.faro;

import java.util.Objects;

/**
 * A function of the rows of a group. All but {@link Function#COUNT_ROWS} pass over nulls; of none
 * a count is 0, any other is null.
 *
 * @param function which
 * @param column number of the column in the rows; of no use to COUNT_ROWS
 * @param result the column that it becomes; null: LONG for counts and for sums of integers,
 *     DECIMAL_38 of the same scale for sums of decimals, DOUBLE for sums of floats, else the column
 *     that it is of. A count, or a sum of integers or decimals, may become any integer or decimal
 *     of the same scale; a value that does not fit it fails the query, which names the column
 */
public record Aggregate(Function function, int column, Column result) {
  /** What is computed. */
  public enum Function {
    /** Rows. */
    COUNT_ROWS,
    /** Rows in which the column is not null. */
    COUNT,
    /** The sum of integers and decimals, in 128 bits; of floats, in the order of arrival. */
    SUM,
    /** NaN is the largest; strings and bytes compare byte by byte, without signs. */
    MIN,
    /** NaN is the largest; strings and bytes compare byte by byte, without signs. */
    MAX,
    /** The value of any row. */
    ANY;

    /** The number that native code knows; a test compares the two. */
    int number() {
      return ordinal();
    }
  }

  /**
   * Checks that there is a function.
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} if the column is negative
   */
  public Aggregate {
    Objects.requireNonNull(function, "function");
    if (column < 0) {
      throw new FaroException(Code.INVALID_ARGUMENT, "column = " + column + " is negative");
    }
  }

  /** The number of rows. */
  public static Aggregate countRows() {
    return new Aggregate(Function.COUNT_ROWS, 0, null);
  }

  /** A function of a column, with the usual result. */
  public static Aggregate of(Function function, int column) {
    return new Aggregate(function, column, null);
  }

  /** This function with a result of this column. */
  public Aggregate as(Column column) {
    return new Aggregate(function, this.column, Objects.requireNonNull(column, "column"));
  }
}
