package io.faro;

/** What an operator does ({@link OperatorMetrics}). */
public enum OperatorKind {
  /** Groups rows by key ({@link Aggregation}). */
  AGGREGATION,
  /** Joins rows of two inputs by key. */
  JOIN;

  /** By its number in C. */
  static OperatorKind of(long number) {
    return values()[(int) number - 1];
  }
}
