package io.faro.sql.shell;

import java.math.BigDecimal;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.calcite.rel.type.RelDataType;
import org.apache.calcite.rel.type.RelDataTypeField;
import org.apache.calcite.sql.type.SqlTypeUtil;

/** Rows as a table of text. */
final class ResultTable {
  private ResultTable() {}

  /** With a line of names above; numbers stand at the right of their columns. */
  static String format(List<RelDataTypeField> columns, List<Object[]> rows) {
    List<String[]> lines = new ArrayList<>();
    lines.add(columns.stream().map(RelDataTypeField::getName).toArray(String[]::new));
    for (Object[] row : rows) {
      String[] line = new String[row.length];
      for (int c = 0; c < row.length; c++) {
        line[c] = text(row[c], columns.get(c).getType());
      }
      lines.add(line);
    }
    StringBuilder text = new StringBuilder();
    for (String[] line : lines) {
      StringBuilder cells = new StringBuilder();
      for (int c = 0; c < line.length; c++) {
        String padding = " ".repeat(width(lines, c) - line[c].length());
        boolean isNumber = SqlTypeUtil.isNumeric(columns.get(c).getType());
        cells.append(c == 0 ? " " : " | ").append(isNumber ? padding + line[c] : line[c] + padding);
      }
      text.append(cells.toString().stripTrailing()).append('\n');
      if (line == lines.get(0)) {
        for (int c = 0; c < line.length; c++) {
          text.append(c == 0 ? "-" : "-+-").append("-".repeat(width(lines, c)));
        }
        text.append("-\n");
      }
    }
    return text.toString();
  }

  private static int width(List<String[]> lines, int column) {
    return lines.stream().mapToInt(line -> line[column].length()).max().orElse(0);
  }

  private static String text(Object value, RelDataType type) {
    if (value == null) {
      return "null";
    }
    return switch (type.getSqlTypeName()) {
      case DATE -> LocalDate.ofEpochDay((Integer) value).toString();
      case TIME -> LocalTime.ofNanoOfDay(TimeUnit.MILLISECONDS.toNanos((Integer) value)).toString();
      case TIMESTAMP -> Instant.ofEpochMilli((Long) value).atZone(ZoneOffset.UTC).toLocalDateTime().toString();
      default -> value instanceof BigDecimal decimal ? decimal.toPlainString() : value.toString();
    };
  }
}
