package io.faro.sql.plan;

import io.faro.Column;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.List;
import java.util.stream.IntStream;

/** The decimals of rows with the scales of their columns: Calcite divides to 16 digits, whatever the type says. */
final class Decimals {
  private final int[] columns; // numbers of those that are decimals
  private final int[] scales;

  /** {@code columns}: of the rows. */
  Decimals(List<Column> columns) {
    this.columns =
        IntStream.range(0, columns.size())
            .filter(c -> columns.get(c).type().javaType() == BigDecimal.class)
            .toArray();
    scales = IntStream.of(this.columns).map(c -> columns.get(c).scale()).toArray();
  }

  /** The row if all fit, else a copy in which they do. */
  Object[] fitting(Object[] row) {
    Object[] fitting = row;
    for (int i = 0; i < columns.length; i++) {
      int column = columns[i];
      if (row[column] instanceof BigDecimal decimal && decimal.scale() > scales[i]) {
        fitting = fitting == row ? row.clone() : fitting;
        fitting[column] = decimal.setScale(scales[i], RoundingMode.HALF_UP);
      }
    }
    return fitting;
  }
}
