package io.faro;

import static io.faro.Checks.codeOf;
import static io.faro.Checks.failsBy;
import static io.faro.Checks.failure;
import static io.faro.Checks.messageOf;
import static io.faro.Checks.received;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(20)
class SchemaCodecTest {
  // A failure prints it; -Dfaro.test.seed=… repeats it.
  private final long seed = Long.getLong("faro.test.seed", System.nanoTime());
  private final Random random = new Random(seed);
  private final RandomRows rows = new RandomRows(random, 20_000);
  private Cluster cluster;

  @BeforeEach
  void open() {
    cluster = new Cluster("auto", 1, 1);
  }

  @AfterEach
  void close() {
    cluster.close();
  }

  @Test
  void anyRowOfAnySchemaArrivesEqual() throws Exception {
    for (int round = 0; round < 200; round++) {
      List<Column> schema = rows.schema(20);
      SchemaCodec codec = new SchemaCodec(schema);
      String which = "seed " + seed + ", round " + round + ", " + schema;
      try (Shuffle shuffle = cluster.openShuffle(codec.rowBytes())) {
        ObjectSender<Object[]> sender = shuffle.sender().objects(codec);
        ObjectReceiver<Object[]> receiver = shuffle.receiver().objects(codec);
        for (int i = 0; i < 20; i++) {
          Object[] row = rows.row(schema);
          assertEquals(Outcome.DONE, sender.send(0, row, Wait.NONE), which);
          shuffle.sender().flush();
          assertEquals(Outcome.DONE, receiver.next(), which); // rows above a ring come in parts
          assertArrayEquals(row, receiver.get(), which);
        }
        assertEquals(Outcome.DONE, shuffle.sender().finish(Wait.NONE), which);
        assertEquals(Outcome.END_OF_STREAM, receiver.next(Wait.NONE), which);
      }
    }
  }

  @Test
  void theLayoutIsThatOfItsPage() {
    SchemaCodec codec =
        new SchemaCodec(
            List.of(
                Column.of(ColumnType.STRING),
                Column.nullable(ColumnType.INT),
                Column.of(ColumnType.SHORT),
                Column.nullable(ColumnType.BYTE),
                Column.nullable(ColumnType.BYTES),
                Column.of(ColumnType.LONG)));
    try (Shuffle shuffle = cluster.openShuffle(0)) {
      Object[] row = {"ab", null, (short) 2, (byte) 3, null, 1L};
      assertEquals(Outcome.DONE, shuffle.sender().objects(codec).send(0, row, Wait.NONE));
      assertEquals(Outcome.DONE, shuffle.sender().finish(Wait.NONE));
      Batch batch = received(shuffle);
      assertTrue(batch.nextRow());
      byte[] bytes = new byte[batch.rowLength()];
      batch.getBytes(batch.rowOffset(), bytes, 0, bytes.length);
      assertArrayEquals(
          new byte[] {1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0b101, 3, 2, 0, 0, 0, 'a', 'b'}, bytes);
    }
  }

  @Test
  void aSchemaOfWidthsAloneHasRowsOfOneWidth() {
    Column plain = Column.of(ColumnType.DOUBLE);
    assertEquals(16, new SchemaCodec(List.of(plain, plain)).rowBytes());
    assertEquals(0, new SchemaCodec(List.of(plain, Column.nullable(ColumnType.LONG))).rowBytes());
    assertEquals(0, new SchemaCodec(List.of(plain, Column.of(ColumnType.STRING))).rowBytes());
  }

  @Test
  void rowsThatDoNotFitTheSchemaAreRefusedByColumn() {
    SchemaCodec codec =
        new SchemaCodec(List.of(Column.of(ColumnType.LONG), Column.nullable(ColumnType.STRING)));
    try (Shuffle shuffle = cluster.openShuffle(0)) {
      ObjectSender<Object[]> sender = shuffle.sender().objects(codec);
      for (Object[] row :
          new Object[][] {{}, {1L}, {1L, "a", 2}, {null, "a"}, {1, "a"}, {1L, new byte[1]}}) {
        assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> sender.send(0, row, Wait.NONE)), () -> Arrays.toString(row));
      }
      Object[][] wrong = {{1L, 2}, {1, "a"}, {null, "a"}};
      assertEquals("column 1 is String, the value Integer", messageOf(() -> sender.send(0, wrong[0], Wait.NONE)));
      assertEquals("column 0 is Long, the value Integer", messageOf(() -> sender.send(0, wrong[1], Wait.NONE)));
      assertEquals("column 0 is Long, the value null", messageOf(() -> sender.broadcast(wrong[2], Wait.NONE)));
      assertEquals(Outcome.DONE, sender.send(0, new Object[] {1L, null}, Wait.NONE));
      assertEquals(Outcome.DONE, sender.broadcast(new Object[] {2L, "b"}, Wait.NONE));
      assertEquals(Outcome.DONE, shuffle.sender().finish(Wait.NONE));
      ObjectReceiver<Object[]> receiver = shuffle.receiver().objects(codec);
      for (Object[] row : new Object[][] {{1L, null}, {2L, "b"}}) {
        assertEquals(Outcome.DONE, receiver.next(Wait.NONE));
        assertArrayEquals(row, receiver.get());
      }
      assertEquals(Outcome.END_OF_STREAM, receiver.next(Wait.NONE));
    }
  }

  @Test
  void decimalsArriveWithTheScaleOfTheirColumnOrAreRefused() throws Exception {
    String nines = "9".repeat(38);
    for (String[] one :
        new String[][] { // precision, scale, sent, received
          {"18", "2", "1.5", "1.50"},
          {"18", "2", "1.500", "1.50"},
          {"18", "2", "1E+3", "1000.00"},
          {"18", "0", "-999999999999999999", "-999999999999999999"},
          {"18", "2", "0.001", null},
          {"18", "2", "1E+18", null},
          {"18", "0", "1E+18", null},
          {"5", "2", "123.45", "123.45"},
          {"5", "2", "-999.99", "-999.99"},
          {"5", "2", "1000", null},
          {"5", "2", "-1000.00", null},
          {"5", "2", "123456789012345.67", null},
          {"1", "1", "0.9", "0.9"},
          {"1", "1", "1", null},
          {"20", "2", "123456789012345678.99", "123456789012345678.99"},
          {"20", "2", "1E+18", null},
          {"19", "2", "1E+18", null},
          {"21", "2", "1E+18", "1000000000000000000.00"},
          {"38", "38", "-0." + nines, "-0." + nines},
          {"38", "0", nines, nines},
          {"38", "0", "-9223372036854775808", "-9223372036854775808"},
          {"38", "0", "9223372036854775808", "9223372036854775808"},
          {"38", "1", nines + "9", null},
          {"38", "1", "0.01", null},
          {"38", "1", "1E+1000000", null},
          {"38", "2", "1E+2147483647", null},
          {"18", "2", "1E+2147483647", null},
        }) {
      Column column = Column.decimal(Integer.parseInt(one[0]), Integer.parseInt(one[1]), false);
      SchemaCodec codec = new SchemaCodec(List.of(column));
      String which = Arrays.toString(one);
      try (Shuffle shuffle = cluster.openShuffle(codec.rowBytes())) {
        ObjectSender<Object[]> sender = shuffle.sender().objects(codec);
        Object[] row = {new BigDecimal(one[2])};
        if (one[3] == null) {
          assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> sender.send(0, row, Wait.NONE)), which);
          assertEquals(Outcome.DONE, sender.send(0, new Object[] {BigDecimal.ZERO}, Wait.NONE), which);
        } else {
          assertEquals(Outcome.DONE, sender.send(0, row, Wait.NONE), which);
        }
        assertEquals(Outcome.DONE, shuffle.sender().finish(), which);
        ObjectReceiver<Object[]> receiver = shuffle.receiver().objects(codec);
        assertEquals(Outcome.DONE, receiver.next(), which);
        BigDecimal expected =
            one[3] == null ? BigDecimal.ZERO.setScale(column.scale()) : new BigDecimal(one[3]);
        assertEquals(expected, receiver.get()[0], which);
        assertEquals(Outcome.END_OF_STREAM, receiver.next(), which);
      }
    }
    for (int precision : new int[] {18, 38}) {
      SchemaCodec codec = new SchemaCodec(List.of(Column.decimal(precision, 0, false)));
      try (Shuffle shuffle = cluster.openShuffle(codec.rowBytes())) {
        BigDecimal derived = new BigDecimal(1) {};
        failure(() -> shuffle.sender().objects(codec).send(0, new Object[] {derived}, Wait.NONE));
      }
    }
    failure(() -> Column.decimal(39, 0, false));
    failure(() -> Column.decimal(0, 0, false));
    failure(() -> Column.decimal(18, -1, false));
    failure(() -> new Column(ColumnType.LONG, false, 1));
  }

  @Test
  void bytesThatAreNoRowAreRefusedAndHarmless() {
    int refused = 0;
    for (int round = 0; round < 500; round++) {
      List<Column> schema = rows.schema(20);
      schema.add(Column.of(ColumnType.BYTES));
      SchemaCodec codec = new SchemaCodec(schema);
      byte[] noise = new byte[random.nextInt(200)];
      random.nextBytes(noise);
      try (Shuffle shuffle = cluster.openShuffle(0)) {
        shuffle.sender().send(0, noise, 0, noise.length, Wait.NONE);
        shuffle.sender().finish(Wait.NONE);
        ObjectReceiver<Object[]> receiver = shuffle.receiver().objects(codec);
        assertEquals(Outcome.DONE, receiver.next(Wait.NONE));
        try {
          receiver.get();
        } catch (FaroException problem) {
          assertEquals(Code.PROTOCOL_ERROR, problem.code(), "seed " + seed);
          refused++;
        }
      }
    }
    assertTrue(refused > 300, "seed " + seed + ": " + refused + " refused");
  }

  // A peer whose codec does not look may send them.
  @Test
  void decimalsOfTooManyDigitsAreRefusedByTheirReader() {
    for (int precision : new int[] {5, 18}) {
      SchemaCodec codec = new SchemaCodec(List.of(Column.decimal(precision, 2, false)));
      long limit = (long) Math.pow(10, precision);
      for (long whole : new long[] {limit - 1, 1 - limit, limit, -limit}) {
        byte[] bytes =
            ByteBuffer.allocate(Long.BYTES).order(ByteOrder.nativeOrder()).putLong(whole).array();
        try (Shuffle shuffle = cluster.openShuffle(Long.BYTES)) {
          shuffle.sender().send(0, bytes, 0, bytes.length, Wait.NONE);
          shuffle.sender().finish(Wait.NONE);
          ObjectReceiver<Object[]> receiver = shuffle.receiver().objects(codec);
          assertEquals(Outcome.DONE, receiver.next(Wait.NONE));
          if (Math.abs(whole) < limit) {
            assertEquals(BigDecimal.valueOf(whole, 2), receiver.get()[0]);
          } else {
            failsBy(Code.PROTOCOL_ERROR, receiver::get, "digits in a column of " + precision);
          }
        }
      }
    }
  }

  private record Point(double x, double y) {}

  @Test
  void recordsOfFixedWidthByTwoFunctions() {
    RowCodec<Point> points =
        RowCodecs.fixed(
            16,
            (point, to) -> {
              to.putDouble(0, point.x());
              to.putDouble(8, point.y());
            },
            (from, at) -> new Point(from.getDouble(at), from.getDouble(at + 8)));
    for (int rowBytes : new int[] {16, 0}) {
      try (Shuffle shuffle = cluster.openShuffle(rowBytes)) {
        Point point = new Point(1.5, -2);
        assertEquals(Outcome.DONE, shuffle.sender().objects(points).send(0, point, Wait.NONE));
        assertEquals(Outcome.DONE, shuffle.sender().finish(Wait.NONE));
        ObjectReceiver<Point> receiver = shuffle.receiver().objects(points);
        assertEquals(Outcome.DONE, receiver.next(Wait.NONE));
        assertEquals(point, receiver.get());
      }
    }
    failure(() -> RowCodecs.fixed(0, points::write, (from, at) -> null));
  }

  @Test
  void aRowOfAnotherWidthThanTheCodecsIsRefused() {
    try (Shuffle shuffle = cluster.openShuffle(0)) {
      shuffle.sender().send(0, new byte[7], 0, 7, Wait.NONE);
      shuffle.sender().finish(Wait.NONE);
      ObjectReceiver<Long> receiver = shuffle.receiver().objects(RowCodecs.LONG);
      assertEquals(Outcome.DONE, receiver.next(Wait.NONE));
      failsBy(Code.INVALID_ARGUMENT, receiver::get);
    }
  }
}
