package io.faro;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The bytes that C++ writes and reads, too: columns_test.cc reads the same file. */
@Timeout(20)
class SchemaBytesTest {
  private static final Pattern COLUMN =
      Pattern.compile("(\\w+)(?:\\((\\d+) (\\d+)\\))?( or null)?");

  @Test
  void writesAndReadsTheBytesThatAreKeptOfEachType() throws Exception {
    List<Column> schema = List.of();
    Object[] row = {};
    int rows = 0;
    Set<ColumnType> types = EnumSet.noneOf(ColumnType.class);
    for (String line : Files.readAllLines(Path.of(System.getProperty("faro.kept.rows")))) {
      if (line.startsWith("columns: ")) {
        schema = Arrays.stream(line.substring(9).split(", ")).map(SchemaBytesTest::column).toList();
        schema.forEach(column -> types.add(column.type()));
      } else if (line.startsWith("values: ")) {
        String[] texts = line.substring(8).split("; ", -1);
        List<Object> values = new ArrayList<>();
        for (int i = 0; i < texts.length; i++) {
          values.add(value(schema.get(i), texts[i]));
        }
        row = values.toArray();
      } else if (line.startsWith("bytes: ")) {
        check(new SchemaCodec(schema), row, HexFormat.of().parseHex(line.substring(7)));
        rows++;
      }
    }
    assertTrue(rows > 40);
    assertEquals(EnumSet.allOf(ColumnType.class), types);
  }

  private static void check(SchemaCodec codec, Object[] row, byte[] bytes) {
    ByteBuffer memory = ByteBuffer.allocateDirect(1000);
    RowBuffer buffer = RowBuffer.over(memory);
    assertEquals(bytes.length, buffer.tryWrite(codec, row, 0), codec::format);
    byte[] written = new byte[bytes.length];
    memory.get(0, written);
    assertArrayEquals(bytes, written, codec::format);
    memory.put(100, bytes);
    assertArrayEquals(row, buffer.read(codec, 100, bytes.length), codec::format);
  }

  private static Column column(String text) {
    Matcher parts = COLUMN.matcher(text);
    assertTrue(parts.matches(), text);
    boolean nullable = parts.group(4) != null;
    ColumnType type = ColumnType.valueOf(parts.group(1));
    return parts.group(2) == null
        ? new Column(type, nullable)
        : new Column(
            type, nullable, Integer.parseInt(parts.group(3)), Integer.parseInt(parts.group(2)));
  }

  private static Object value(Column column, String text) {
    if (text.equals("null")) {
      return null;
    }
    return switch (column.type()) {
      case BOOLEAN -> text.equals("1");
      case BYTE -> Byte.valueOf(text);
      case SHORT -> Short.valueOf(text);
      case INT -> Integer.valueOf(text);
      case LONG -> Long.valueOf(text);
      case FLOAT -> Float.intBitsToFloat(Integer.parseUnsignedInt(text, 16));
      case DOUBLE -> Double.longBitsToDouble(Long.parseUnsignedLong(text, 16));
      case DECIMAL_18, DECIMAL_38 -> new BigDecimal(new BigInteger(text), column.scale());
      case STRING -> text.substring(1, text.length() - 1);
      case BYTES -> HexFormat.of().parseHex(text.substring(1));
    };
  }
}
