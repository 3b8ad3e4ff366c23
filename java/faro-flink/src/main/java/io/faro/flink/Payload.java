package io.faro.flink;

import java.io.IOException;
import java.nio.ByteBuffer;

/** What follows the header of a message. Threads: one at a time. */
interface Payload {
  /** Bytes that have not been copied yet. */
  int remaining();

  /**
   * Copies the next bytes, as many as {@code target}, a direct buffer, has room for; its position
   * may move. At most {@link #remaining}.
   *
   * @throws IOException if they cannot be read; then nothing more is copied
   */
  void copyTo(ByteBuffer target) throws IOException;

  /** The payload was copied, or is not needed any more. Once. */
  void release();

  /** An array, from its beginning. It must not change. */
  static Payload of(byte[] bytes) {
    return new Payload() {
      private int at;

      @Override
      public int remaining() {
        return bytes.length - at;
      }

      @Override
      public void copyTo(ByteBuffer target) {
        int count = target.remaining();
        target.put(bytes, at, count);
        at += count;
      }

      @Override
      public void release() {}
    };
  }
}
