package io.faro;

import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Carries {@code Object[]} rows of a schema, densely packed in three parts (Rödiger et al., "High-Speed
 * Query Processing over High-Speed Networks", VLDB 2015, §3.2.1):
 *
 * <pre>
 *   +---------------------------+-----------------------------------------+------------------------------+
 *   | values of the columns     | null bits, one per column  | values of  | for each column of variable  |
 *   | with a width that are     | that may be null, from the | those with | width that is not null:      |
 *   | never null, widest first  | lowest bit of a byte on;   | a width    | length (4 bytes), then bytes |
 *   |                           | 1: null                    | not null   |                              |
 *   +---------------------------+-----------------------------------------+------------------------------+
 * </pre>
 *
 * Within a part columns stand in the order of the schema. Nothing is aligned. A schema of columns with a
 * width that are never null has rows of one width; all others have a length each.
 *
 * <p>Rows are arrays that may be changed after they were sent; {@link RowCodecs#immutable} declares
 * otherwise. Threads: any.
 */
public final class SchemaCodec implements RowCodec<Object[]> {
  private static final int LENGTH = Integer.BYTES;

  private final Column[] columns;
  // Numbers of columns, in the order in which they are written.
  private final int[] plain; // with a width, never null
  private final int[] nullable;
  private final int[] nullableWithWidth;
  private final int[] variable;
  private final int[] nullBit; // of a column; -1: it is never null
  private final int plainBytes;
  private final int nullBytes;

  /** For rows of these columns. */
  public SchemaCodec(List<Column> schema) {
    columns = schema.toArray(Column[]::new);
    plain =
        numbers()
            .filter(c -> columns[c].isPlain())
            .boxed()
            .sorted(Comparator.comparingInt((Integer c) -> -columns[c].type().bytes()))
            .mapToInt(Integer::intValue)
            .toArray();
    nullable = numbers().filter(c -> columns[c].nullable()).toArray();
    nullableWithWidth =
        numbers().filter(c -> columns[c].nullable() && columns[c].type().bytes() != 0).toArray();
    variable = numbers().filter(c -> columns[c].type().bytes() == 0).toArray();
    plainBytes = IntStream.of(plain).map(c -> columns[c].type().bytes()).sum();
    nullBytes = (nullable.length + 7) / 8;
    nullBit = numbers().map(c -> IntStream.of(nullable).boxed().toList().indexOf(c)).toArray();
  }

  /** The columns. */
  public List<Column> schema() {
    return List.of(columns);
  }

  @Override
  public int rowBytes() {
    return plain.length == columns.length ? plainBytes : 0;
  }

  /**
   * Also checks the row.
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} naming the column, if it does not fit the schema
   */
  @Override
  public int maxBytes(Object[] row) {
    if (row.length != columns.length) {
      throw new FaroException(
          Code.INVALID_ARGUMENT, "a row of " + row.length + " values for " + columns.length + " columns");
    }
    int bytes = plainBytes + nullBytes;
    for (int c = 0; c < columns.length; c++) {
      check(c, row[c]);
      if (row[c] != null && !columns[c].isPlain()) {
        int value = columns[c].type().maxBytes(row[c]);
        bytes = Math.addExact(bytes, columns[c].type().bytes() == 0 ? Math.addExact(LENGTH, value) : value);
      }
    }
    return bytes;
  }

  @Override
  public int write(Object[] row, RowWriter to) {
    int at = 0;
    for (int c : plain) {
      columns[c].put(to, at, row[c]);
      at += columns[c].type().bytes();
    }
    for (int first = 0; first < nullable.length; first += 8, at++) {
      to.putByte(at, nullBits(row, first));
    }
    for (int c : nullableWithWidth) {
      if (row[c] != null) {
        columns[c].put(to, at, row[c]);
        at += columns[c].type().bytes();
      }
    }
    for (int c : variable) {
      if (row[c] != null) {
        byte[] bytes = columns[c].type().toBytes(row[c]);
        to.putInt(at, bytes.length);
        to.putBytes(at + LENGTH, bytes, 0, bytes.length);
        at += LENGTH + bytes.length;
      }
    }
    return at;
  }

  /**
   * A new array.
   *
   * @throws FaroException {@link Code#PROTOCOL_ERROR} if the bytes are no row of this schema
   */
  @Override
  public Object[] read(Frame from, int begin, int bytes) {
    Object[] row = new Object[columns.length];
    int end = begin + bytes;
    int at = begin;
    checkRest(plainBytes + nullBytes, end - at);
    for (int c : plain) {
      row[c] = columns[c].get(from, at);
      at += columns[c].type().bytes();
    }
    int nulls = at;
    at += nullBytes;
    for (int c : nullableWithWidth) {
      if (!isNull(c, from, nulls)) {
        checkRest(columns[c].type().bytes(), end - at);
        row[c] = columns[c].get(from, at);
        at += columns[c].type().bytes();
      }
    }
    for (int c : variable) {
      if (!isNull(c, from, nulls)) {
        checkRest(LENGTH, end - at);
        int length = from.getInt(at);
        at += LENGTH;
        checkRest(length, end - at);
        row[c] = columns[c].type().get(from, at, length);
        at += length;
      }
    }
    return row;
  }

  private IntStream numbers() {
    return IntStream.range(0, columns.length);
  }

  private boolean isNull(int column, Frame from, int nulls) {
    int bit = nullBit[column];
    return bit >= 0 && (from.getByte(nulls + bit / 8) >> bit % 8 & 1) != 0;
  }

  // Of eight columns that may be null.
  private byte nullBits(Object[] row, int first) {
    int bits = 0;
    for (int i = first; i < Math.min(first + 8, nullable.length); i++) {
      if (row[nullable[i]] == null) {
        bits |= 1 << i - first;
      }
    }
    return (byte) bits;
  }

  private void check(int column, Object value) {
    ColumnType type = columns[column].type();
    if (value == null ? !columns[column].nullable() : value.getClass() != type.javaType()) {
      throw new FaroException(
          Code.INVALID_ARGUMENT,
          "column "
              + column
              + " is "
              + type.javaType().getSimpleName()
              + ", the value "
              + (value == null ? "null" : value.getClass().getSimpleName()));
    }
  }

  // Another process wrote the row: no length in it is trusted.
  private static void checkRest(int wanted, int left) {
    if (wanted < 0 || wanted > left) {
      throw new FaroException(
          Code.PROTOCOL_ERROR,
          "a row that does not fit its schema: " + wanted + " bytes where " + left + " are left");
    }
  }
}
