package io.faro.sql.tables;

import io.faro.sql.SqlException;
import java.util.Locale;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.calcite.rel.type.RelDataTypeFactory;
import org.apache.calcite.sql.type.SqlTypeName;

/** A column of a table; {@code precision} and {@code scale} are -1 where the type has none. */
public record Attribute(String name, SqlTypeName type, int precision, int scale, boolean nullable) {
  private static final Pattern TEXT =
      Pattern.compile("(\\w+)\\s+(\\w+)\\s*(?:\\(\\s*(\\d+)\\s*(?:,\\s*(\\d+)\\s*)?\\))?(\\s+not\\s+null)?");
  private static final Set<SqlTypeName> TYPES =
      Set.of(
          SqlTypeName.BOOLEAN, SqlTypeName.INTEGER, SqlTypeName.BIGINT, SqlTypeName.DOUBLE, SqlTypeName.DECIMAL,
          SqlTypeName.DATE, SqlTypeName.TIMESTAMP, SqlTypeName.VARCHAR);

  public static Attribute integer(String name) {
    return new Attribute(name, SqlTypeName.INTEGER, -1, -1, false);
  }

  static Attribute decimal(String name, int precision, int scale) {
    return new Attribute(name, SqlTypeName.DECIMAL, precision, scale, false);
  }

  static Attribute date(String name) {
    return new Attribute(name, SqlTypeName.DATE, -1, -1, false);
  }

  static Attribute timestamp(String name) {
    return new Attribute(name, SqlTypeName.TIMESTAMP, 3, -1, false);
  }

  public static Attribute text(String name) {
    return new Attribute(name, SqlTypeName.VARCHAR, -1, -1, false);
  }

  /**
   * From {@code price decimal(15,2) not null}.
   *
   * @throws SqlException if it is none, or of a type that tables cannot have
   */
  static Attribute parse(String text) {
    Matcher parts = TEXT.matcher(text == null ? "" : text.strip().toLowerCase(Locale.ROOT));
    SqlTypeName type = parts.matches() ? SqlTypeName.get(parts.group(2).toUpperCase(Locale.ROOT)) : null;
    if (type == null || !TYPES.contains(type)) {
      throw new SqlException("no column with its type: " + text, null);
    }
    boolean nullable = parts.group(5) == null;
    return switch (type) {
      case DECIMAL ->
          new Attribute(parts.group(1), type, number(parts.group(3), 18), number(parts.group(4), 0), nullable);
      case TIMESTAMP -> new Attribute(parts.group(1), type, 3, -1, nullable);
      default -> new Attribute(parts.group(1), type, -1, -1, nullable);
    };
  }

  private static int number(String digits, int otherwise) {
    return digits == null ? otherwise : Integer.parseInt(digits);
  }

  /** This attribute, which may be null, too. */
  Attribute orNull() {
    return new Attribute(name, type, precision, scale, true);
  }

  void addTo(RelDataTypeFactory.Builder builder) {
    if (scale >= 0) {
      builder.add(name, type, precision, scale);
    } else if (precision >= 0) {
      builder.add(name, type, precision);
    } else {
      builder.add(name, type);
    }
    builder.nullable(nullable);
  }

  /** The text that {@link #parse} reads. */
  @Override
  public String toString() {
    String digits = scale >= 0 ? "(" + precision + "," + scale + ")" : "";
    return name + " " + type.getName().toLowerCase(Locale.ROOT) + digits + (nullable ? "" : " not null");
  }
}
