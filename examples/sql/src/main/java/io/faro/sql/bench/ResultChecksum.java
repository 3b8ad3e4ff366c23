package io.faro.sql.bench;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.math.BigDecimal;
import java.math.MathContext;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.zip.CRC32;

/**
 * The checksum of a result, which is equal for equal rows in any order, whoever added up what is in
 * them.
 */
final class ResultChecksum {
  private static final MathContext DIGITS = new MathContext(12); // of what is not exact

  private ResultChecksum() {}

  /** In hexadecimal digits. */
  static String of(List<Object[]> rows) {
    long sum = 0;
    for (Object[] row : rows) {
      String text = Arrays.stream(row).map(ResultChecksum::text).collect(Collectors.joining("|"));
      CRC32 crc = new CRC32();
      crc.update(text.getBytes(UTF_8));
      sum += (crc.getValue() << 32 | crc.getValue()) * 0x9e3779b97f4a7c15L; // equal rows must not cancel out
    }
    return String.format("%016x", sum);
  }

  private static String text(Object value) {
    if (value instanceof Double || value instanceof Float) {
      return new BigDecimal(value.toString()).round(DIGITS).stripTrailingZeros().toPlainString();
    }
    return value instanceof BigDecimal decimal
        ? decimal.stripTrailingZeros().toPlainString()
        : String.valueOf(value);
  }
}
