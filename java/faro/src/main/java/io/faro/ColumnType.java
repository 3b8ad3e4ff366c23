package io.faro;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;

/** What a {@link Column} holds, and how. Numbers are little-endian. */
public enum ColumnType {
  /** A {@link Boolean} in one byte: 0 or 1. */
  BOOLEAN(Boolean.class, Byte.BYTES) {
    @Override
    void put(RowWriter to, int at, Object value, int scale) {
      to.putByte(at, (byte) ((Boolean) value ? 1 : 0));
    }

    @Override
    Object get(Frame from, int at, int scale) {
      return from.getByte(at) != 0;
    }
  },
  /** A {@link Byte}. */
  BYTE(Byte.class, Byte.BYTES) {
    @Override
    void put(RowWriter to, int at, Object value, int scale) {
      to.putByte(at, (Byte) value);
    }

    @Override
    Object get(Frame from, int at, int scale) {
      return from.getByte(at);
    }
  },
  /** A {@link Short}. */
  SHORT(Short.class, Short.BYTES) {
    @Override
    void put(RowWriter to, int at, Object value, int scale) {
      to.putShort(at, (Short) value);
    }

    @Override
    Object get(Frame from, int at, int scale) {
      return from.getShort(at);
    }
  },
  /** An {@link Integer}. */
  INT(Integer.class, Integer.BYTES) {
    @Override
    void put(RowWriter to, int at, Object value, int scale) {
      to.putInt(at, (Integer) value);
    }

    @Override
    Object get(Frame from, int at, int scale) {
      return from.getInt(at);
    }
  },
  /** A {@link Long}. */
  LONG(Long.class, Long.BYTES) {
    @Override
    void put(RowWriter to, int at, Object value, int scale) {
      to.putLong(at, (Long) value);
    }

    @Override
    Object get(Frame from, int at, int scale) {
      return from.getLong(at);
    }
  },
  /** A {@link Float}, bit for bit. */
  FLOAT(Float.class, Float.BYTES) {
    @Override
    void put(RowWriter to, int at, Object value, int scale) {
      to.putInt(at, Float.floatToRawIntBits((Float) value));
    }

    @Override
    Object get(Frame from, int at, int scale) {
      return Float.intBitsToFloat(from.getInt(at));
    }
  },
  /** A {@link Double}, bit for bit. */
  DOUBLE(Double.class, Double.BYTES) {
    @Override
    void put(RowWriter to, int at, Object value, int scale) {
      to.putLong(at, Double.doubleToRawLongBits((Double) value));
    }

    @Override
    Object get(Frame from, int at, int scale) {
      return Double.longBitsToDouble(from.getLong(at));
    }
  },
  /**
   * A {@link BigDecimal} of up to 18 digits, as its value without the point in a long: {@link Column#decimal}
   * says where the point is.
   */
  DECIMAL_18(BigDecimal.class, Long.BYTES) {
    @Override
    void put(RowWriter to, int at, Object value, int scale) {
      BigDecimal decimal = (BigDecimal) value;
      try {
        to.putLong(at, decimal.scaleByPowerOfTen(scale).longValueExact());
      } catch (ArithmeticException problem) {
        throw unfit(decimal, scale);
      }
    }

    @Override
    Object get(Frame from, int at, int scale) {
      return BigDecimal.valueOf(from.getLong(at), scale);
    }
  },
  /** The same of up to 38 digits, in 16 bytes. */
  DECIMAL_38(BigDecimal.class, 2 * Long.BYTES) {
    private static final int DIGITS = 38;

    @Override
    void put(RowWriter to, int at, Object value, int scale) {
      BigDecimal decimal = (BigDecimal) value;
      BigDecimal whole = decimal.scaleByPowerOfTen(scale);
      try {
        long digits = (long) whole.precision() - whole.scale();
        if (digits <= LONG_DIGITS) {
          long low = whole.longValueExact();
          put(to, at, low, low >> 63);
          return;
        }
        if (digits <= DIGITS) {
          BigInteger wide = whole.toBigIntegerExact();
          put(to, at, wide.longValue(), wide.shiftRight(Long.SIZE).longValue());
          return;
        }
      } catch (ArithmeticException problem) {
        // Told below.
      }
      throw unfit(decimal, scale);
    }

    private void put(RowWriter to, int at, long low, long high) {
      to.putLong(at, low);
      to.putLong(at + Long.BYTES, high);
    }

    @Override
    Object get(Frame from, int at, int scale) {
      long low = from.getLong(at);
      long high = from.getLong(at + Long.BYTES);
      if (high == low >> 63) {
        return BigDecimal.valueOf(low, scale);
      }
      byte[] bytes = ByteBuffer.allocate(2 * Long.BYTES).putLong(high).putLong(low).array();
      return new BigDecimal(new BigInteger(bytes), scale);
    }
  },
  /** A {@link String}, as UTF-8 of any length. */
  STRING(String.class, 0) {
    @Override
    int maxBytes(Object value) {
      return Math.multiplyExact(3, ((String) value).length());
    }

    @Override
    byte[] toBytes(Object value) {
      return ((String) value).getBytes(UTF_8);
    }

    @Override
    Object get(Frame from, int at, int length) {
      return from.getString(at, length);
    }
  },
  /** A {@code byte[]} of any length. */
  BYTES(byte[].class, 0) {
    @Override
    int maxBytes(Object value) {
      return ((byte[]) value).length;
    }

    @Override
    byte[] toBytes(Object value) {
      return (byte[]) value;
    }

    @Override
    Object get(Frame from, int at, int length) {
      byte[] bytes = new byte[length];
      from.getBytes(at, bytes, 0, length);
      return bytes;
    }
  };

  /** Decimals of so many digits fit into a long. */
  static final int LONG_DIGITS = 18;

  private final Class<?> javaType;
  private final int bytes;

  ColumnType(Class<?> javaType, int bytes) {
    this.javaType = javaType;
    this.bytes = bytes;
  }

  /** What a value of this type is in an {@code Object[]}. */
  public Class<?> javaType() {
    return javaType;
  }

  /** Width in bytes; 0: each value has a length. */
  public int bytes() {
    return bytes;
  }

  private static FaroException unfit(BigDecimal value, int scale) {
    return new FaroException(
        Code.INVALID_ARGUMENT,
        value + " has too many digits, or more than " + scale + " behind the point");
  }

  /** Of types with a width {@code detail} is the column's scale, else how many bytes the value has. */
  abstract Object get(Frame from, int at, int detail);

  // --- of types with a width; scale: the column's

  void put(RowWriter to, int at, Object value, int scale) {
    throw new AssertionError(this);
  }

  // --- of types with a length

  /** An upper limit for the bytes of a value. */
  int maxBytes(Object value) {
    return bytes;
  }

  byte[] toBytes(Object value) {
    throw new AssertionError(this);
  }
}
