package io.faro;

import java.math.BigDecimal;

/** What a {@link Column} holds, and how. Numbers are little-endian. */
public enum ColumnType {
  /** A {@link Boolean} in one byte: 0 or 1. */
  BOOLEAN(Boolean.class, Byte.BYTES),
  /** A {@link Byte}. */
  BYTE(Byte.class, Byte.BYTES),
  /** A {@link Short}. */
  SHORT(Short.class, Short.BYTES),
  /** An {@link Integer}. */
  INT(Integer.class, Integer.BYTES),
  /** A {@link Long}. */
  LONG(Long.class, Long.BYTES),
  /** A {@link Float}, bit for bit. */
  FLOAT(Float.class, Float.BYTES),
  /** A {@link Double}, bit for bit. */
  DOUBLE(Double.class, Double.BYTES),
  /**
   * A {@link BigDecimal} of up to 18 digits: its unscaled value in a long. {@link Column#decimal}
   * sets precision and scale.
   */
  DECIMAL_18(BigDecimal.class, Long.BYTES),
  /**
   * A {@link BigDecimal} of up to 38 digits: its unscaled value in 16 bytes. {@link Column#decimal}
   * sets precision and scale.
   */
  DECIMAL_38(BigDecimal.class, 2 * Long.BYTES),
  /** A {@link String} of any length, as {@link RowCodecs#STRING} writes it. */
  STRING(String.class, 0),
  /** A {@code byte[]} of any length. */
  BYTES(byte[].class, 0);

  private final Class<?> javaType;
  private final int bytes;

  ColumnType(Class<?> javaType, int bytes) {
    this.javaType = javaType;
    this.bytes = bytes;
  }

  /** The number that native code knows; a test compares the two. */
  int number() {
    return ordinal();
  }

  /** The class of a value of this type in an {@code Object[]}. */
  public Class<?> javaType() {
    return javaType;
  }

  /** Width in bytes; 0: each value has a length. */
  public int bytes() {
    return bytes;
  }

  // A switch, not a method per constant: a schema has columns of many types, and a call with many
  // possible targets is not inlined. An object that is no value of the type leads to a
  // ClassCastException or a NullPointerException.

  // --- of types with a width, at an address; scale and precision: the column's

  void put(long at, Object value, int scale, int precision) {
    switch (this) {
      case BOOLEAN -> NativeMemory.putByte(at, (byte) ((Boolean) value ? 1 : 0));
      case BYTE -> NativeMemory.putByte(at, (Byte) value);
      case SHORT -> NativeMemory.putShort(at, (Short) value);
      case INT -> NativeMemory.putInt(at, (Integer) value);
      case LONG -> NativeMemory.putLong(at, (Long) value);
      case FLOAT -> NativeMemory.putInt(at, Float.floatToRawIntBits((Float) value));
      case DOUBLE -> NativeMemory.putLong(at, Double.doubleToRawLongBits((Double) value));
      case DECIMAL_18 ->
          NativeMemory.putLong(at, Decimals.toLong((BigDecimal) value, scale, precision));
      case DECIMAL_38 -> Decimals.putWide(at, (BigDecimal) value, scale, precision);
      default -> throw new AssertionError(this);
    }
  }

  Object get(long at, int scale) {
    return switch (this) {
      case BOOLEAN -> NativeMemory.getByte(at) != 0;
      case BYTE -> NativeMemory.getByte(at);
      case SHORT -> NativeMemory.getShort(at);
      case INT -> NativeMemory.getInt(at);
      case LONG -> NativeMemory.getLong(at);
      case FLOAT -> Float.intBitsToFloat(NativeMemory.getInt(at));
      case DOUBLE -> Double.longBitsToDouble(NativeMemory.getLong(at));
      case DECIMAL_18 -> BigDecimal.valueOf(NativeMemory.getLong(at), scale);
      case DECIMAL_38 -> Decimals.getWide(at, scale);
      default -> throw new AssertionError(this);
    };
  }

  // --- of types with a length

  /** An upper bound for the bytes of a value. */
  int maxBytes(Object value) {
    return this == STRING ? Utf8.maxBytes((String) value) : ((byte[]) value).length;
  }

  byte[] toBytes(Object value) {
    return this == STRING ? Utf8.encode((String) value) : (byte[]) value;
  }
}
