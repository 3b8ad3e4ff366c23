package io.faro.sql.cluster;

import io.faro.sql.tables.Attribute;
import io.faro.sql.tables.Table;
import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.calcite.sql.type.SqlTypeName;
import org.duckdb.DuckDBAppender;
import org.duckdb.DuckDBConnection;

/** The cluster's tables in DuckDB, a database that nobody here wrote. */
final class Reference {
  private static final int PLACES = 6;
  private static final int DIGITS = 12;

  private Reference() {}

  static Connection of(Map<String, Table> tables) throws SQLException {
    Connection connection = DriverManager.getConnection("jdbc:duckdb:");
    for (Map.Entry<String, Table> table : tables.entrySet()) {
      List<Attribute> attributes = table.getValue().attributes();
      try (Statement statement = connection.createStatement()) {
        statement.execute(
            attributes.stream()
                .map(a -> "\"" + a.name() + "\" " + type(a))
                .collect(Collectors.joining(", ", "create table " + table.getKey() + " (", ")")));
      }
      try (DuckDBAppender appender =
          ((DuckDBConnection) connection).createAppender("main", table.getKey())) {
        for (Object[] row : table.getValue().rows(0, 1)) {
          appender.beginRow();
          for (int i = 0; i < row.length; i++) {
            append(appender, attributes.get(i), row[i]);
          }
          appender.endRow();
        }
      }
    }
    return connection;
  }

  private static void append(DuckDBAppender appender, Attribute attribute, Object value) throws SQLException {
    if (value instanceof BigDecimal decimal) {
      appender.appendBigDecimal(decimal);
    } else if (attribute.type() == SqlTypeName.DATE && value != null) {
      appender.append(LocalDate.ofEpochDay((Integer) value).toString());
    } else if (attribute.type() == SqlTypeName.TIMESTAMP && value != null) {
      appender.appendLocalDateTime(
          LocalDateTime.ofInstant(Instant.ofEpochMilli((Long) value), ZoneOffset.UTC));
    } else if (value instanceof Integer number) {
      appender.append(number.intValue());
    } else if (value instanceof Long number) {
      appender.append(number.longValue());
    } else {
      appender.append((String) value);
    }
  }

  private static String type(Attribute attribute) {
    return attribute.scale() >= 0
        ? "decimal(" + attribute.precision() + "," + attribute.scale() + ")"
        : attribute.type().getName();
  }

  /** What DuckDB writes otherwise: TIMESTAMP('…') without parentheses, and the division of integers as {@code //}. */
  static String dialect(String sql) {
    return sql.replaceAll("timestamp\\('(.{10}).(..).(..).([^']*)'\\)", "timestamp '$1 $2:$3:$4'")
        .replace("sum(ol_quantity) / count(*)", "sum(ol_quantity) // count(*)");
  }

  static List<Object[]> rows(Connection connection, String sql) throws SQLException {
    List<Object[]> rows = new ArrayList<>();
    try (Statement statement = connection.createStatement();
        ResultSet result = statement.executeQuery(sql)) {
      int columns = result.getMetaData().getColumnCount();
      while (result.next()) {
        Object[] row = new Object[columns];
        for (int i = 0; i < columns; i++) {
          row[i] = result.getObject(i + 1);
        }
        rows.add(row);
      }
    }
    return rows;
  }

  /** Rows as text that is equal for equal values of different types. */
  static List<String> texts(List<Object[]> rows) {
    return rows.stream()
        .map(row -> Arrays.stream(row).map(Reference::text).collect(Collectors.joining(" | ")))
        .toList();
  }

  private static String text(Object value) {
    // To as many places as decimals have in both: a quotient of decimals is a DOUBLE in DuckDB.
    if (value instanceof Double || value instanceof BigDecimal) {
      BigDecimal number = new BigDecimal(value.toString());
      BigDecimal rounded = number.setScale(Math.min(number.scale(), PLACES), RoundingMode.HALF_UP);
      return rounded.round(new MathContext(DIGITS)).stripTrailingZeros().toPlainString();
    }
    if (value instanceof Timestamp timestamp) {
      return text(timestamp.toLocalDateTime().toInstant(ZoneOffset.UTC).toEpochMilli());
    }
    return value instanceof LocalDate date ? String.valueOf(date.toEpochDay()) : String.valueOf(value);
  }
}
