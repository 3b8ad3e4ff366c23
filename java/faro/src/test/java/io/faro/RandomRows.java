package io.faro;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** Schemas and rows of any values; a few of the texts and bytes are as long as {@code longest}. */
record RandomRows(Random random, int longest) {
  /** A schema of up to {@code most} columns. */
  List<Column> schema(int most) {
    List<Column> schema = new ArrayList<>();
    ColumnType[] types = ColumnType.values();
    for (int i = 1 + random.nextInt(most); i > 0; i--) {
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

  private BigDecimal decimal(int digits, int scale) {
    BigInteger limit = BigInteger.TEN.pow(random.nextInt(digits + 1));
    BigInteger value = new BigInteger(128, random).mod(limit);
    return new BigDecimal(random.nextBoolean() ? value : value.negate(), scale);
  }

  Object[] row(List<Column> schema) {
    return schema.stream().map(this::value).toArray();
  }

  private Object value(Column column) {
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
      case DECIMAL_18, DECIMAL_38 -> decimal(digits(column.type()), column.scale());
      case STRING ->
          random
              .ints(random.nextInt(random.nextInt(50) == 0 ? Math.min(2000, longest) : 30), 0, 0x10ffff)
              .filter(c -> c < 0xd800 || c > 0xdfff)
              .collect(StringBuilder::new, StringBuilder::appendCodePoint, StringBuilder::append)
              .toString();
      case BYTES -> {
        byte[] bytes = new byte[random.nextInt(50) == 0 ? longest : random.nextInt(100)];
        random.nextBytes(bytes);
        yield bytes;
      }
    };
  }
}
