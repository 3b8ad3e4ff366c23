package io.faro;

import static java.nio.charset.StandardCharsets.UTF_8;

/** Ready codecs. */
public final class RowCodecs {
  private RowCodecs() {}

  /** A long as 8 bytes. Boxes; {@link LongSender} does not. */
  public static final RowCodec<Long> LONG =
      new RowCodec<>() {
        @Override
        public boolean immutable() {
          return true;
        }

        @Override
        public int rowBytes() {
          return Long.BYTES;
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
        public Long read(Frame from, int at, int bytes) {
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
        public int maxBytes(byte[] object) {
          return object.length;
        }

        @Override
        public int write(byte[] object, RowWriter to) {
          to.putBytes(0, object, 0, object.length);
          return object.length;
        }

        @Override
        public byte[] read(Frame from, int at, int bytes) {
          byte[] object = new byte[bytes];
          from.getBytes(at, object, 0, bytes);
          return object;
        }
      };

  /** A string as UTF-8. */
  public static final RowCodec<String> STRING =
      new RowCodec<>() {
        @Override
        public boolean immutable() {
          return true;
        }

        @Override
        public int rowBytes() {
          return 0;
        }

        @Override
        public int maxBytes(String object) {
          return Math.multiplyExact(3, object.length());
        }

        @Override
        public int write(String object, RowWriter to) {
          byte[] bytes = object.getBytes(UTF_8);
          to.putBytes(0, bytes, 0, bytes.length);
          return bytes.length;
        }

        @Override
        public String read(Frame from, int at, int bytes) {
          return new String(BYTES.read(from, at, bytes), UTF_8);
        }
      };
}
