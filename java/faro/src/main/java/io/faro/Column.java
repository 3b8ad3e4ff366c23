package io.faro;

import java.util.Objects;

/**
 * A column of the rows that a {@link SchemaCodec} carries.
 *
 * @param type what it holds
 * @param nullable whether it may hold null instead
 */
public record Column(ColumnType type, boolean nullable) {
  /** Checks that there is a type. */
  public Column {
    Objects.requireNonNull(type);
  }

  /** A column that is never null. */
  public static Column of(ColumnType type) {
    return new Column(type, false);
  }

  /** A column that may be null. */
  public static Column nullable(ColumnType type) {
    return new Column(type, true);
  }

  boolean isPlain() {
    return type.bytes() != 0 && !nullable;
  }
}
