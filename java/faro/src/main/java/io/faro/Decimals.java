package io.faro;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;

/** Decimals as whole numbers: their unscaled values, with the decimal point {@code scale} digits from the right. */
final class Decimals {
  /** Decimals with up to this many digits fit into a long. */
  static final int LONG_DIGITS = 18;

  /** The most digits that a decimal can have. */
  static final int WIDE_DIGITS = 38;

  private Decimals() {}

  /**
   * Of up to 18 digits.
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} if digits would be lost
   */
  static long toLong(BigDecimal value, int scale) {
    checkClass(value);
    try {
      return value.scaleByPowerOfTen(scale).longValueExact();
    } catch (ArithmeticException problem) {
      throw unfit(value, scale);
    }
  }

  /**
   * Of up to 38 digits, in 16 bytes.
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} if digits would be lost
   */
  static void putWide(long at, BigDecimal value, int scale) {
    checkClass(value);
    try {
      BigDecimal whole = value.scaleByPowerOfTen(scale);
      long digits = (long) whole.precision() - whole.scale();
      if (digits <= LONG_DIGITS) {
        long low = whole.longValueExact();
        putWide(at, low, low >> 63);
        return;
      }
      if (digits <= WIDE_DIGITS) {
        BigInteger wide = whole.toBigIntegerExact();
        putWide(at, wide.longValue(), wide.shiftRight(Long.SIZE).longValue());
        return;
      }
    } catch (ArithmeticException problem) {
      // Reported below.
    }
    throw unfit(value, scale);
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

  private static FaroException unfit(BigDecimal value, int scale) {
    return new FaroException(
        Code.INVALID_ARGUMENT,
        value + " has too many digits, or more than " + scale + " behind the point");
  }
}
