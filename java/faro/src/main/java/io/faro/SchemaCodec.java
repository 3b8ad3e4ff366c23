package io.faro;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Carries {@code Object[]} rows of a schema, densely packed in three parts (Rödiger et al.,
 * "High-Speed Query Processing over High-Speed Networks", VLDB 2015, §3.2.1):
 *
 * <pre>
 * +--------------------------+-----------------------------------------+------------------------+
 * | values of the columns    | null bits, one per column  | values of  | for each column of     |
 * | with a width that are    | that may be null, from the | those with | variable width that is |
 * | never null, widest first | lowest bit of a byte on;   | a width    | not null: length (4    |
 * |                          | 1: null                    | not null   | bytes), then bytes     |
 * +--------------------------+-----------------------------------------+------------------------+
 * </pre>
 *
 * Within a part, columns are in the order of the schema. Nothing is aligned. If all columns have a
 * width and are never null, all rows have the same width; otherwise each row is preceded by its
 * length.
 *
 * <p>Rows are arrays that may be changed after they were sent. Threads: any.
 */
public final class SchemaCodec implements RowCodec<Object[]> {
  private static final int LENGTH = Integer.BYTES;

  private final Column[] columns;
  // In the order in which they are written.
  private final Field[] plain; // with a width, never null
  private final Field[] nullable; // by their null bits
  private final Field[] nullableWithWidth;
  private final Field[] variable;
  private final int rowBytes; // 0: rows have a length each
  private final int plainBytes;
  private final int nullBytes;
  private final int nullableBytes; // of the columns with a width, if none is null
  private final String format;

  /** A column: its number, and its null bit, or -1: it is never null. */
  private record Field(int column, ColumnType type, int scale, int precision, int nullBit) {
    static Field of(Column column, int number, int nullBit) {
      return new Field(number, column.type(), column.scale(), column.precision(), nullBit);
    }
  }

  /** For rows of these columns. */
  public SchemaCodec(List<Column> schema) {
    columns = Nulls.none(schema, "schema").toArray(Column[]::new);
    List<Field> fields = new ArrayList<>();
    int bits = 0;
    for (Column column : columns) {
      fields.add(Field.of(column, fields.size(), column.nullable() ? bits++ : -1));
    }
    plain =
        fields.stream()
            .filter(field -> columns[field.column].isPlain())
            .sorted(Comparator.comparingInt(field -> -field.type.bytes()))
            .toArray(Field[]::new);
    nullable = fields.stream().filter(field -> field.nullBit >= 0).toArray(Field[]::new);
    nullableWithWidth =
        fields.stream()
            .filter(field -> field.nullBit >= 0 && field.type.bytes() != 0)
            .toArray(Field[]::new);
    variable = fields.stream().filter(field -> field.type.bytes() == 0).toArray(Field[]::new);
    plainBytes = bytes(plain);
    rowBytes = plain.length == columns.length ? plainBytes : 0;
    nullBytes = (nullable.length + 7) / 8;
    nullableBytes = bytes(nullableWithWidth);
    format = formatOf(columns);
  }

  private static int bytes(Field[] fields) {
    return List.of(fields).stream().mapToInt(field -> field.type.bytes()).sum();
  }

  /**
   * {@code "schema(LONG, STRING or null, DECIMAL_18(2))"}: the columns; for decimals, the digits
   * after the decimal point.
   */
  @Override
  public String format() {
    return format;
  }

  private static String formatOf(Column[] columns) {
    return Stream.of(columns)
        .map(
            column ->
                column.type()
                    + (column.isDecimal() ? "(" + column.scale() + ")" : "")
                    + (column.nullable() ? " or null" : ""))
        .collect(Collectors.joining(", ", "schema(", ")"));
  }

  /** The columns. */
  public List<Column> schema() {
    return List.of(columns);
  }

  @Override
  public int rowBytes() {
    return rowBytes;
  }

  /**
   * {@inheritDoc}
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} if the row has too many or too few values,
   *     or one of variable width does not fit the schema
   */
  @Override
  public int maxBytes(Object[] row) {
    checkLength(row);
    int bytes = plainBytes + nullBytes + nullableBytes;
    try {
      for (Field field : variable) {
        Object value = row[field.column];
        if (value != null) {
          bytes = Math.addExact(bytes, Math.addExact(LENGTH, field.type.maxBytes(value)));
        }
      }
    } catch (ClassCastException problem) {
      throw unfit(row, problem);
    }
    return bytes;
  }

  /**
   * {@inheritDoc}
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} naming the column whose value has the wrong
   *     class, or the decimal with too many digits
   */
  @Override
  public int write(Object[] row, RowWriter to) {
    checkLength(row);
    long begin = to.address(0, plainBytes + nullBytes + nullableBytes);
    try {
      return (int) (put(row, begin, begin + to.limit()) - begin);
    } catch (ClassCastException | NullPointerException problem) {
      throw unfit(row, problem);
    }
  }

  // Writes between two addresses. Returns where the row ends.
  private long put(Object[] row, long begin, long end) {
    long at = begin;
    for (Field field : plain) {
      field.type.put(at, row[field.column], field.scale, field.precision);
      at += field.type.bytes();
    }
    long nulls = at;
    for (int first = 0; first < nullable.length; first += 8, at++) {
      NativeMemory.putByte(at, nullBits(row, first));
    }
    for (Field field : nullableWithWidth) {
      if (!isNull(field, nulls)) {
        field.type.put(at, row[field.column], field.scale, field.precision);
        at += field.type.bytes();
      }
    }
    for (Field field : variable) {
      if (isNull(field, nulls)) {
        continue;
      }
      byte[] bytes = field.type.toBytes(row[field.column]);
      if (bytes.length > end - at - LENGTH) {
        throw changed(null);
      }
      NativeMemory.putInt(at, bytes.length);
      NativeMemory.put(at + LENGTH, bytes, 0, bytes.length);
      at += LENGTH + bytes.length;
    }
    return at;
  }

  /**
   * A new array.
   *
   * @throws FaroException {@link Code#PROTOCOL_ERROR} if a peer has sent bytes that are not a row
   *     of this schema, {@link Code#INVALID_ARGUMENT} if they lie in a {@link RowBuffer}
   */
  @Override
  public Object[] read(Batch from, int begin, int bytes) {
    long at = from.address(begin, bytes);
    long end = at + bytes;
    Object[] row = new Object[columns.length];
    checkRest(from, plainBytes + nullBytes, end - at);
    for (Field field : plain) {
      row[field.column] = value(field, from, at);
      at += field.type.bytes();
    }
    long nulls = at;
    at += nullBytes;
    for (Field field : nullableWithWidth) {
      if (!isNull(field, nulls)) {
        checkRest(from, field.type.bytes(), end - at);
        row[field.column] = value(field, from, at);
        at += field.type.bytes();
      }
    }
    for (Field field : variable) {
      if (!isNull(field, nulls)) {
        checkRest(from, LENGTH, end - at);
        int length = NativeMemory.getInt(at);
        at += LENGTH;
        checkRest(from, length, end - at);
        row[field.column] = value(field.type, from, at, length);
        at += length;
      }
    }
    return row;
  }

  // A value of a type with a width. A decimal may have more digits than its column.
  private static Object value(Field field, Batch from, long at) {
    Object value = field.type.get(at, field.scale);
    if (value instanceof BigDecimal decimal && decimal.precision() > field.precision) {
      throw from.damaged(
          "a decimal of " + decimal.precision() + " digits in a column of " + field.precision);
    }
    return value;
  }

  private static Object value(ColumnType type, Batch from, long at, int length) {
    if (type == ColumnType.STRING) {
      return from.string(at, length);
    }
    byte[] bytes = new byte[length];
    NativeMemory.get(at, bytes, 0, length);
    return bytes;
  }

  private static boolean isNull(Field field, long nulls) {
    int bit = field.nullBit;
    return bit >= 0 && (NativeMemory.getByte(nulls + bit / 8) >> bit % 8 & 1) != 0;
  }

  // The null bits of eight columns that may be null.
  private byte nullBits(Object[] row, int first) {
    int bits = 0;
    for (int i = first; i < Math.min(first + 8, nullable.length); i++) {
      if (row[nullable[i].column] == null) {
        bits |= 1 << i - first;
      }
    }
    return (byte) bits;
  }

  private void checkLength(Object[] row) {
    if (row.length != columns.length) {
      throw new FaroException(
          Code.INVALID_ARGUMENT,
          "a row of " + row.length + " values for " + columns.length + " columns");
    }
  }

  // Finds the value of a row that caused the error: the first one that does not fit.
  private FaroException unfit(Object[] row, RuntimeException problem) {
    for (int c = 0; c < columns.length; c++) {
      Class<?> type = columns[c].type().javaType();
      Object value = row[c];
      if (value == null ? !columns[c].nullable() : value.getClass() != type) {
        return new FaroException(
            Code.INVALID_ARGUMENT,
            "column %s is %s, the value %s"
                .formatted(
                    c,
                    type.getSimpleName(),
                    value == null ? null : value.getClass().getSimpleName()));
      }
    }
    return changed(problem);
  }

  private static FaroException changed(RuntimeException problem) {
    return new FaroException(Code.INVALID_ARGUMENT, "a row was changed while it was sent", problem);
  }

  // Another process wrote the row, so no length in it is trusted.
  private static void checkRest(Batch from, int wanted, long left) {
    if (wanted < 0 || wanted > left) {
      throw from.damaged(
          "a row does not fit its schema: " + wanted + " bytes where " + left + " are left");
    }
  }

  @Override
  public String toString() {
    return format;
  }
}
