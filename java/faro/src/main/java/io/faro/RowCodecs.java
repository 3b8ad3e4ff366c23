package io.faro;

import java.util.Objects;

/**
 * Ready-made codecs, and methods that make codecs; for {@code Object[]} rows see
 * {@link SchemaCodec}.
 */
public final class RowCodecs {
  private RowCodecs() {}

  /** Writes all fields of an object, at the beginning of the claim. */
  @FunctionalInterface
  public interface FieldsWriter<T> {
    /** Puts every byte of the row. */
    void write(T object, RowWriter to);
  }

  /** Makes an object from its fields. */
  @FunctionalInterface
  public interface FieldsReader<T> {
    /** The row begins at {@code at} in the batch. */
    T read(Batch from, int at);
  }

  /**
   * A codec for records of fixed width.
   *
   * <pre>{@code
   * RowCodec<Point> points =
   *     RowCodecs.fixed(
   *         16,
   *         (point, to) -> {
   *           to.putDouble(0, point.x());
   *           to.putDouble(8, point.y());
   *         },
   *         (from, at) -> new Point(from.getDouble(at), from.getDouble(at + 8)));
   * }</pre>
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} if the width is not positive
   */
  public static <T> RowCodec<T> fixed(
      int rowBytes, FieldsWriter<T> writer, FieldsReader<T> reader) {
    if (rowBytes <= 0) {
      throw new FaroException(Code.INVALID_ARGUMENT, "a fixed width of " + rowBytes + " bytes");
    }
    Objects.requireNonNull(writer, "writer");
    Objects.requireNonNull(reader, "reader");
    return new FixedCodec<>(rowBytes, writer, reader);
  }

  private record FixedCodec<T>(int rowBytes, FieldsWriter<T> writer, FieldsReader<T> reader)
      implements RowCodec<T> {
    @Override
    public String format() {
      return "fixed(" + rowBytes + ")";
    }

    @Override
    public int maxBytes(T object) {
      return rowBytes;
    }

    @Override
    public int write(T object, RowWriter to) {
      writer.write(object, to);
      return rowBytes;
    }

    @Override
    public T read(Batch from, int at, int bytes) {
      return reader.read(from, at);
    }
  }

  /** A long as 8 bytes. Boxes; {@link LongSender} does not. */
  public static final RowCodec<Long> LONG =
      new RowCodec<>() {
        @Override
        public int rowBytes() {
          return Long.BYTES;
        }

        @Override
        public String format() {
          return "LONG";
        }

        @Override
        public int maxBytes(Long object) {
          return Long.BYTES;
        }

        @Override
        public int write(Long object, RowWriter to) {
          to.putLong(0, object);
          return Long.BYTES;
        }

        @Override
        public Long read(Batch from, int at, int bytes) {
          return from.getLong(at);
        }
      };

  /** Bytes as they are. */
  public static final RowCodec<byte[]> BYTES =
      new RowCodec<>() {
        @Override
        public int rowBytes() {
          return 0;
        }

        @Override
        public String format() {
          return "BYTES";
        }

        @Override
        public int maxBytes(byte[] object) {
          return object.length;
        }

        @Override
        public int write(byte[] object, RowWriter to) {
          to.putBytes(0, object, 0, object.length);
          return object.length;
        }

        @Override
        public byte[] read(Batch from, int at, int bytes) {
          byte[] object = new byte[bytes];
          from.getBytes(at, object, 0, bytes);
          return object;
        }
      };

  /**
   * A string as UTF-8. Every string arrives as it was sent: an unpaired surrogate, which UTF-8
   * cannot represent, is written as the three bytes of its number (WTF-8). So different strings
   * have different bytes.
   */
  public static final RowCodec<String> STRING =
      new RowCodec<>() {
        @Override
        public int rowBytes() {
          return 0;
        }

        @Override
        public String format() {
          return "STRING";
        }

        @Override
        public int maxBytes(String object) {
          return Utf8.maxBytes(object);
        }

        @Override
        public int write(String object, RowWriter to) {
          byte[] bytes = Utf8.encode(object);
          to.putBytes(0, bytes, 0, bytes.length);
          return bytes.length;
        }

        @Override
        public String read(Batch from, int at, int bytes) {
          return from.string(from.address(at, bytes), bytes);
        }
      };
}
