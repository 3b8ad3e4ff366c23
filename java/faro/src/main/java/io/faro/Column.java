package io.faro;

import java.util.Objects;

/**
 * A column of the rows that a {@link SchemaCodec} carries.
 *
 * @param type what it holds
 * @param nullable whether it may hold null instead
 * @param scale for decimals: digits after the decimal point, which every value has when it arrives;
 *     else 0
 * @param precision for decimals: most digits of a value, those after the decimal point included;
 *     else 0
 */
public record Column(ColumnType type, boolean nullable, int scale, int precision) {
  /**
   * Checks that there is a type, and that only decimals have digits: at most as many as the type
   * has.
   */
  public Column {
    Objects.requireNonNull(type, "type");
    if (scale < 0 || scale > digits(type)) {
      throw new FaroException(
          Code.INVALID_ARGUMENT, "a column of type " + type + " with scale " + scale);
    }
    if (precision < Math.max(scale, Math.min(1, digits(type))) || precision > digits(type)) {
      throw new FaroException(
          Code.INVALID_ARGUMENT,
          "a column of type " + type + " with scale " + scale + " and precision " + precision);
    }
  }

  /** A column of as many digits as its type has. */
  public Column(ColumnType type, boolean nullable, int scale) {
    this(type, nullable, scale, type == null ? 0 : digits(type));
  }

  /** A column of scale 0. */
  public Column(ColumnType type, boolean nullable) {
    this(type, nullable, 0);
  }

  /** A column that is never null. */
  public static Column of(ColumnType type) {
    return new Column(type, false);
  }

  /** A column that may be null. */
  public static Column nullable(ColumnType type) {
    return new Column(type, true);
  }

  /**
   * A column of decimals with {@code precision} digits, 1 to 38, {@code scale} of them after the
   * decimal point. Up to 18 digits take 8 bytes, more take 16. A value with more digits, before the
   * decimal point or behind it, is refused when it is sent.
   */
  public static Column decimal(int precision, int scale, boolean nullable) {
    if (precision < 1 || precision > Decimals.WIDE_DIGITS) {
      throw new FaroException(
          Code.INVALID_ARGUMENT,
          "a decimal of " + precision + " digits, not 1 to " + Decimals.WIDE_DIGITS);
    }
    if (scale < 0 || scale > precision) {
      throw new FaroException(
          Code.INVALID_ARGUMENT,
          "a decimal of " + precision + " digits, " + scale + " of them behind the point");
    }
    ColumnType type =
        precision <= Decimals.LONG_DIGITS ? ColumnType.DECIMAL_18 : ColumnType.DECIMAL_38;
    return new Column(type, nullable, scale, precision);
  }

  private static int digits(ColumnType type) {
    return switch (type) {
      case DECIMAL_18 -> Decimals.LONG_DIGITS;
      case DECIMAL_38 -> Decimals.WIDE_DIGITS;
      default -> 0;
    };
  }

  boolean isDecimal() {
    return digits(type) > 0;
  }

  boolean isPlain() {
    return type.bytes() != 0 && !nullable;
  }
}
