package io.faro;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;

/**
 * Decimals as whole numbers: their unscaled values, with the decimal point {@code scale} digits
 * from the right.
 */
final class Decimals {
  /** Decimals with up to this many digits fit into a long. */
  static final int LONG_DIGITS = 18;

  /** The most digits that a decimal can have. */
  static final int WIDE_DIGITS = 38;

  private static final long[] POWERS = powersOfTen();

  private Decimals() {}

  private static long[] powersOfTen() {
    long[] powers = new long[LONG_DIGITS + 1];
    powers[0] = 1;
    for (int i = 1; i <= LONG_DIGITS; i++) {
      powers[i] = 10 * powers[i - 1];
    }
    return powers;
  }

  /**
   * The unscaled value of a decimal of {@code precision} digits, at most 18.
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} if digits would be lost
   */
  static long toLong(BigDecimal value, int scale, int precision) {
    checkClass(value);
    try {
      long whole = value.scaleByPowerOfTen(scale).longValueExact();
      long limit = POWERS[precision];
      if (-limit < whole && whole < limit) {
        return whole;
      }
    } catch (ArithmeticException problem) {
      // Reported below.
    }
    throw unfit(value, scale, precision);
  }

  /**
   * Puts the unscaled value of a decimal of {@code precision} digits, at most 38, in 16 bytes.
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} if digits would be lost
   */
  static void putWide(long at, BigDecimal value, int scale, int precision) {
    checkClass(value);
    try {
      BigDecimal whole = value.scaleByPowerOfTen(scale);
      long digits = (long) whole.precision() - whole.scale();
      if (digits <= Math.min(precision, LONG_DIGITS)) {
        long low = whole.longValueExact();
        putWide(at, low, low >> 63);
        return;
      }
      if (digits <= precision) {
        BigInteger wide = whole.toBigIntegerExact();
        putWide(at, wide.longValue(), wide.shiftRight(Long.SIZE).longValue());
        return;
      }
    } catch (ArithmeticException problem) {
      // Reported below.
    }
    throw unfit(value, scale, precision);
  }

  private static void putWide(long at, long low, long high) {
    NativeMemory.putLong(at, low);
    NativeMemory.putLong(at + Long.BYTES, high);
  }

  /** Reads what {@link #putWide} has written. */
  static BigDecimal getWide(long at, int scale) {
    long low = NativeMemory.getLong(at);
    long high = NativeMemory.getLong(at + Long.BYTES);
    if (high == low >> 63) {
      return BigDecimal.valueOf(low, scale);
    }
    byte[] bytes = ByteBuffer.allocate(2 * Long.BYTES).putLong(high).putLong(low).array();
    return new BigDecimal(new BigInteger(bytes), scale);
  }

  // A derived class is foreign code, which would run in the middle of a row.
  private static void checkClass(BigDecimal value) {
    if (value.getClass() != BigDecimal.class) {
      throw new ClassCastException();
    }
  }

  private static FaroException unfit(BigDecimal value, int scale, int precision) {
    return new FaroException(
        Code.INVALID_ARGUMENT,
        value + " has too many digits, more than " + precision + ", or more than " + scale
            + " behind the point");
  }
}
