package io.faro;

import static java.nio.charset.StandardCharsets.UTF_8;

/** What a {@link Column} holds, and how. Numbers are little-endian. */
public enum ColumnType {
  /** A {@link Boolean} in one byte: 0 or 1. */
  BOOLEAN(Boolean.class, Byte.BYTES) {
    @Override
    void put(RowWriter to, int at, Object value) {
      to.putByte(at, (byte) ((Boolean) value ? 1 : 0));
    }

    @Override
    Object get(Frame from, int at) {
      return from.getByte(at) != 0;
    }
  },
  /** A {@link Byte}. */
  BYTE(Byte.class, Byte.BYTES) {
    @Override
    void put(RowWriter to, int at, Object value) {
      to.putByte(at, (Byte) value);
    }

    @Override
    Object get(Frame from, int at) {
      return from.getByte(at);
    }
  },
  /** A {@link Short}. */
  SHORT(Short.class, Short.BYTES) {
    @Override
    void put(RowWriter to, int at, Object value) {
      to.putShort(at, (Short) value);
    }

    @Override
    Object get(Frame from, int at) {
      return from.getShort(at);
    }
  },
  /** An {@link Integer}. */
  INT(Integer.class, Integer.BYTES) {
    @Override
    void put(RowWriter to, int at, Object value) {
      to.putInt(at, (Integer) value);
    }

    @Override
    Object get(Frame from, int at) {
      return from.getInt(at);
    }
  },
  /** A {@link Long}. */
  LONG(Long.class, Long.BYTES) {
    @Override
    void put(RowWriter to, int at, Object value) {
      to.putLong(at, (Long) value);
    }

    @Override
    Object get(Frame from, int at) {
      return from.getLong(at);
    }
  },
  /** A {@link Float}, bit for bit. */
  FLOAT(Float.class, Float.BYTES) {
    @Override
    void put(RowWriter to, int at, Object value) {
      to.putInt(at, Float.floatToRawIntBits((Float) value));
    }

    @Override
    Object get(Frame from, int at) {
      return Float.intBitsToFloat(from.getInt(at));
    }
  },
  /** A {@link Double}, bit for bit. */
  DOUBLE(Double.class, Double.BYTES) {
    @Override
    void put(RowWriter to, int at, Object value) {
      to.putLong(at, Double.doubleToRawLongBits((Double) value));
    }

    @Override
    Object get(Frame from, int at) {
      return Double.longBitsToDouble(from.getLong(at));
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
    Object ofBytes(byte[] bytes) {
      return new String(bytes, UTF_8);
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
    Object ofBytes(byte[] bytes) {
      return bytes;
    }
  };

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

  // --- of types with a width

  void put(RowWriter to, int at, Object value) {
    throw new AssertionError(this);
  }

  Object get(Frame from, int at) {
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

  Object ofBytes(byte[] bytes) {
    throw new AssertionError(this);
  }
}
