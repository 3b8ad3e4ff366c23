package io.faro;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
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
  private Cluster cluster;

  @BeforeEach
  void open() {
    cluster = new Cluster("auto", 1, 1);
  }

  @AfterEach
  void close() {
    cluster.close();
  }

  private Shuffle openShuffle(int rowBytes) {
    return cluster
        .worker(0)
        .openShuffle(new ShuffleSpec(cluster.session(0).beginQuery(), 1, rowBytes));
  }

  private List<Column> randomSchema() {
    List<Column> schema = new ArrayList<>();
    ColumnType[] types = ColumnType.values();
    for (int i = 1 + random.nextInt(20); i > 0; i--) {
      ColumnType type = types[random.nextInt(types.length)];
      boolean nullable = random.nextInt(3) == 0;
      schema.add(
          type.javaType() == BigDecimal.class
              ? Column.decimal(digits(type), random.nextInt(digits(type)), nullable)
              : new Column(type, nullable));
    }
    return schema;
  }

  private static int digits(ColumnType decimal) {
    return decimal == ColumnType.DECIMAL_18 ? 18 : 38;
  }

  private BigDecimal randomDecimal(int digits, int scale) {
    BigInteger limit = BigInteger.TEN.pow(random.nextInt(digits + 1));
    BigInteger value = new BigInteger(128, random).mod(limit);
    return new BigDecimal(random.nextBoolean() ? value : value.negate(), scale);
  }

  private Object[] randomRow(List<Column> schema) {
    return schema.stream().map(this::randomValue).toArray();
  }

  private Object randomValue(Column column) {
    if (column.nullable() && random.nextBoolean()) {
      return null;
    }
    return switch (column.type()) {
      case BOOLEAN -> random.nextBoolean();
      case BYTE -> (byte) random.nextInt();
      case SHORT -> (short) random.nextInt();
      case INT -> random.nextInt();
      case LONG -> random.nextLong();
      case FLOAT -> Float.intBitsToFloat(random.nextInt());
      case DOUBLE -> Double.longBitsToDouble(random.nextLong());
      case DECIMAL_18, DECIMAL_38 -> randomDecimal(digits(column.type()), column.scale());
      case STRING ->
          random
              .ints(random.nextInt(random.nextInt(50) == 0 ? 2000 : 30), 0, 0x10ffff)
              .filter(c -> c < 0xd800 || c > 0xdfff)
              .collect(StringBuilder::new, StringBuilder::appendCodePoint, StringBuilder::append)
              .toString();
      case BYTES -> {
        byte[] bytes = new byte[random.nextInt(50) == 0 ? 20_000 : random.nextInt(100)];
        random.nextBytes(bytes);
        yield bytes;
      }
    };
  }

  @Test
  void anyRowOfAnySchemaArrivesEqual() throws Exception {
    for (int round = 0; round < 200; round++) {
      List<Column> schema = randomSchema();
      SchemaCodec codec = new SchemaCodec(schema);
      String which = "seed " + seed + ", round " + round + ", " + schema;
      try (Shuffle shuffle = openShuffle(codec.rowBytes())) {
        ObjectSender<Object[]> sender = shuffle.sender().objects(codec);
        ObjectReceiver<Object[]> receiver = shuffle.receiver().objects(codec);
        for (int i = 0; i < 20; i++) {
          Object[] row = randomRow(schema);
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
    try (Shuffle shuffle = openShuffle(0)) {
      Object[] row = {"ab", null, (short) 2, (byte) 3, null, 1L};
      assertEquals(Outcome.DONE, shuffle.sender().objects(codec).send(0, row, Wait.NONE));
      assertEquals(Outcome.DONE, shuffle.sender().finish(Wait.NONE));
      Batch batch = shuffle.receiver().newBatch();
      assertEquals(Outcome.DONE, shuffle.receiver().receive(batch, Wait.NONE));
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
    try (Shuffle shuffle = openShuffle(0)) {
      ObjectSender<Object[]> sender = shuffle.sender().objects(codec);
      for (Object[] row :
          new Object[][] {{}, {1L}, {1L, "a", 2}, {null, "a"}, {1, "a"}, {1L, new byte[1]}}) {
        FaroException refused =
            assertThrows(FaroException.class, () -> sender.send(0, row, Wait.NONE), () -> Arrays.toString(row));
        assertEquals(Code.INVALID_ARGUMENT, refused.code());
      }
      FaroException refused =
          assertThrows(FaroException.class, () -> sender.send(0, new Object[] {1L, 2}, Wait.NONE));
      assertEquals("column 1 is String, the value Integer", refused.getMessage());
      refused = assertThrows(FaroException.class, () -> sender.send(0, new Object[] {1, "a"}, Wait.NONE));
      assertEquals("column 0 is Long, the value Integer", refused.getMessage());
      refused = assertThrows(FaroException.class, () -> sender.broadcast(new Object[] {null, "a"}, Wait.NONE));
      assertEquals("column 0 is Long, the value null", refused.getMessage());
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
          {"19", "2", "1E+18", "1000000000000000000.00"},
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
      try (Shuffle shuffle = openShuffle(codec.rowBytes())) {
        ObjectSender<Object[]> sender = shuffle.sender().objects(codec);
        Object[] row = {new BigDecimal(one[2])};
        if (one[3] == null) {
          FaroException refused = assertThrows(FaroException.class, () -> sender.send(0, row, Wait.NONE), which);
          assertEquals(Code.INVALID_ARGUMENT, refused.code());
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
      try (Shuffle shuffle = openShuffle(codec.rowBytes())) {
        BigDecimal derived = new BigDecimal(1) {};
        assertThrows(FaroException.class, () -> shuffle.sender().objects(codec).send(0, new Object[] {derived}, Wait.NONE));
      }
    }
    assertThrows(FaroException.class, () -> Column.decimal(39, 0, false));
    assertThrows(FaroException.class, () -> Column.decimal(0, 0, false));
    assertThrows(FaroException.class, () -> Column.decimal(18, -1, false));
    assertThrows(FaroException.class, () -> new Column(ColumnType.LONG, false, 1));
  }

  @Test
  void bytesThatAreNoRowAreRefusedAndHarmless() {
    int refused = 0;
    for (int round = 0; round < 500; round++) {
      List<Column> schema = randomSchema();
      schema.add(Column.of(ColumnType.BYTES));
      SchemaCodec codec = new SchemaCodec(schema);
      byte[] noise = new byte[random.nextInt(200)];
      random.nextBytes(noise);
      try (Shuffle shuffle = openShuffle(0)) {
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
      try (Shuffle shuffle = openShuffle(rowBytes)) {
        Point point = new Point(1.5, -2);
        assertEquals(Outcome.DONE, shuffle.sender().objects(points).send(0, point, Wait.NONE));
        assertEquals(Outcome.DONE, shuffle.sender().objects(RowCodecs.immutable(points)).send(0, point, Wait.NONE));
        assertEquals(Outcome.DONE, shuffle.sender().finish(Wait.NONE));
        ObjectReceiver<Point> receiver = shuffle.receiver().objects(points);
        assertEquals(Outcome.DONE, receiver.next(Wait.NONE));
        assertEquals(point, receiver.get());
        assertEquals(Outcome.DONE, receiver.next(Wait.NONE));
        assertEquals(point, receiver.get());
        if (rowBytes == 0) {
          assertSame(point, receiver.get());
        }
      }
    }
    assertThrows(FaroException.class, () -> RowCodecs.fixed(0, points::write, (from, at) -> null));
  }

  @Test
  void aRowOfAnotherWidthThanTheCodecsIsRefused() {
    try (Shuffle shuffle = openShuffle(0)) {
      shuffle.sender().send(0, new byte[7], 0, 7, Wait.NONE);
      shuffle.sender().finish(Wait.NONE);
      ObjectReceiver<Long> receiver = shuffle.receiver().objects(RowCodecs.LONG);
      assertEquals(Outcome.DONE, receiver.next(Wait.NONE));
      assertEquals(Code.INVALID_ARGUMENT, assertThrows(FaroException.class, receiver::get).code());
    }
  }
}
