package io.faro;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;

/** Writes the first inputs of {@link RowCodecFuzz} into a folder: frames of real rows, and some that are broken. */
public final class RowCodecSeeds {
  private static final Column TEXT = Column.of(ColumnType.STRING);
  private static final Column MAYBE_LONG = Column.nullable(ColumnType.LONG);
  private static final int LENGTH = Integer.BYTES; // in front of a row

  private final Path folder;
  private final Cluster cluster;

  private RowCodecSeeds(Path folder, Cluster cluster) {
    this.folder = folder;
    this.cluster = cluster;
  }

  /** @param arguments the folder */
  public static void main(String[] arguments) throws IOException {
    try (Cluster cluster = new Cluster("auto", 1, 1)) {
      new RowCodecSeeds(Path.of(arguments[0]), cluster).write();
    }
  }

  private void write() throws IOException {
    List<Column> widths =
        List.of(
            Column.of(ColumnType.BOOLEAN),
            Column.of(ColumnType.BYTE),
            Column.of(ColumnType.SHORT),
            Column.of(ColumnType.INT),
            Column.of(ColumnType.LONG),
            Column.of(ColumnType.FLOAT),
            Column.of(ColumnType.DOUBLE));
    Object[] numbers = {true, (byte) 2, (short) 3, 4, 5L, 6f, 7.0};
    add("every_width", widths, RowCodecFuzz.Way.NEXT, RowCodecFuzz.AGAIN, numbers, numbers);
    List<Column> decimals =
        List.of(Column.decimal(18, 2, false), Column.decimal(38, 5, false), Column.decimal(38, 0, true));
    Object[] amounts = {new BigDecimal("-1.50"), new BigDecimal("123456789012345678901.00001"), null};
    add("decimals", decimals, RowCodecFuzz.Way.DRAIN, RowCodecFuzz.AGAIN, amounts);
    List<Column> nullables = List.of(MAYBE_LONG, Column.nullable(ColumnType.BYTES), Column.nullable(ColumnType.INT));
    Object[] present = {1L, new byte[] {2}, 3};
    add("nulls", nullables, RowCodecFuzz.Way.DRAIN, RowCodecFuzz.AGAIN, present, new Object[3]);
    List<Column> texts = List.of(TEXT, TEXT, Column.of(ColumnType.BYTES));
    Object[] words = {"", "h\u00e9", new byte[3]};
    add("texts", texts, RowCodecFuzz.Way.ROW_BY_ROW, RowCodecFuzz.AGAIN, words, words);

    byte[] batch = frameOf(List.of(TEXT), new Object[] {"word"});
    add("broken_row_length", List.of(TEXT), RowCodecFuzz.Way.NEXT, changed(batch, 0, 9));
    add("broken_text_length", List.of(TEXT), RowCodecFuzz.Way.NEXT, changed(batch, LENGTH, 5));
    add("broken_text_length_below_0", List.of(TEXT), RowCodecFuzz.Way.DRAIN, changed(batch, LENGTH + 3, 0xff));
    add("broken_cut_short", List.of(TEXT), RowCodecFuzz.Way.ROW_BY_ROW, Arrays.copyOf(batch, batch.length - 1));
    add("broken_row_length_below_0", List.of(TEXT), RowCodecFuzz.Way.NEXT, changed(batch, 3, 0x80));
  }

  private void add(String name, List<Column> schema, RowCodecFuzz.Way way, int flags, Object[]... rows) throws IOException {
    add(name, schema, way.ordinal() | flags, rows.length, frameOf(schema, rows));
  }

  private void add(String name, List<Column> schema, RowCodecFuzz.Way way, byte[] batch) throws IOException {
    add(name, schema, way.ordinal(), 1, batch);
  }

  private void add(String name, List<Column> schema, int flags, int rows, byte[] batch) throws IOException {
    ByteArrayOutputStream input = new ByteArrayOutputStream();
    input.write(schema.size() - 1);
    for (Column column : schema) {
      input.write(
          column.type().ordinal()
              | (column.nullable() ? RowCodecFuzz.NULLABLE : 0)
              | column.scale() * RowCodecFuzz.SCALE);
    }
    input.write(flags);
    input.write(rows - 1);
    input.write(batch);
    Files.write(folder.resolve(name), input.toByteArray());
  }

  private byte[] frameOf(List<Column> schema, Object[]... rows) {
    try (Shuffle shuffle = cluster.openShuffle(0);
        Batch batch = shuffle.receiver().newBatch()) {
      for (Object[] row : rows) {
        shuffle.sender().objects(new SchemaCodec(schema)).send(0, row, Wait.NONE);
      }
      shuffle.sender().finish(Wait.NONE);
      shuffle.receiver().receive(batch, Wait.NONE);
      byte[] bytes = new byte[batch.bytes()];
      batch.getBytes(0, bytes, 0, bytes.length);
      return bytes;
    }
  }

  private static byte[] changed(byte[] batch, int at, int value) {
    byte[] bytes = batch.clone();
    bytes[at] = (byte) value;
    return bytes;
  }
}
