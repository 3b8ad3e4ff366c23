package io.faro;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * Converts strings to bytes and back without loss. The bytes are UTF-8, except that an unpaired
 * surrogate, which UTF-8 cannot represent, takes three bytes as any other char of its size (WTF-8,
 * Sapin). So different strings have different bytes, and every string arrives as it was sent, on
 * any node.
 */
final class Utf8 {
  private static final int SHORT = 256;
  // A long of eight '?', which the JDK writes in place of an unpaired surrogate.
  private static final long QUESTION_MARKS = 0x3f3f3f3f3f3f3f3fL;
  private static final long ONES = 0x0101010101010101L;
  private static final long HIGH_BITS = 0x8080808080808080L;
  private static final VarHandle LONGS =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  // The JDK reads this in place of bytes that are not UTF-8.
  private static final char REPLACEMENT = '\ufffd';

  private Utf8() {}

  /**
   * The bytes of a text that native code reads up to its end.
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} if it has a NUL character, which would be
   *     that end
   */
  static byte[] whole(String what, String text) {
    if (text.indexOf('\0') >= 0) {
      throw new FaroException(Code.INVALID_ARGUMENT, what + " has a NUL character");
    }
    return text.getBytes(UTF_8);
  }

  /** An upper bound for the bytes: three per char for short strings, exact for long ones. */
  static int maxBytes(String text) {
    int chars = text.length();
    if (chars <= SHORT) {
      return 3 * chars;
    }
    long bytes = chars;
    for (int i = 0; i < chars; i++) {
      char unit = text.charAt(i);
      if (isPairAt(text, i)) {
        bytes += 2; // four for the two of them
        i++;
      } else {
        bytes += unit < 0x80 ? 0 : unit < 0x800 ? 1 : 2;
      }
    }
    return Math.toIntExact(bytes);
  }

  static byte[] encode(String text) {
    byte[] bytes = text.getBytes(UTF_8);
    // The JDK's encoder is the fastest; a char that it cannot encode becomes a '?'.
    return hasQuestionMark(bytes) ? encodeWithoutLoss(text, bytes) : bytes;
  }

  private static byte[] encodeWithoutLoss(String text, byte[] encoded) {
    int alone = 0;
    for (int i = 0; i < text.length(); i++) {
      if (isPairAt(text, i)) {
        i++;
      } else if (Character.isSurrogate(text.charAt(i))) {
        alone++;
      }
    }
    if (alone == 0) {
      return encoded;
    }
    byte[] bytes = new byte[encoded.length + 2 * alone]; // three bytes instead of a '?'
    int at = 0;
    int begin = 0; // of the chars that were not written
    for (int i = 0; i < text.length(); i++) {
      char unit = text.charAt(i);
      if (isPairAt(text, i)) {
        i++;
      } else if (Character.isSurrogate(unit)) {
        at = put(text.substring(begin, i).getBytes(UTF_8), bytes, at);
        bytes[at++] = (byte) (0xe0 | unit >> 12);
        bytes[at++] = (byte) (0x80 | unit >> 6 & 0x3f);
        bytes[at++] = (byte) (0x80 | unit & 0x3f);
        begin = i + 1;
      }
    }
    put(text.substring(begin).getBytes(UTF_8), bytes, at);
    return bytes;
  }

  private static int put(byte[] from, byte[] to, int at) {
    System.arraycopy(from, 0, to, at, from.length);
    return at + from.length;
  }

  /**
   * Decodes what {@link #encode} has written. Bytes that it never writes become U+FFFD, as when the
   * JDK reads them.
   */
  static String decode(byte[] bytes, int count) {
    String text = new String(bytes, 0, count, UTF_8);
    return text.indexOf(REPLACEMENT) < 0 ? text : decodeSurrogates(bytes, count, text);
  }

  private static String decodeSurrogates(byte[] bytes, int count, String decoded) {
    StringBuilder text = null;
    int begin = 0; // of the bytes that were not read
    for (int i = 0; i + 2 < count; i++) {
      // No other byte of a char is 0xed.
      if (bytes[i] == (byte) 0xed
          && (bytes[i + 1] & 0xe0) == 0xa0
          && (bytes[i + 2] & 0xc0) == 0x80) {
        text = text == null ? new StringBuilder(count) : text;
        text.append(new String(bytes, begin, i - begin, UTF_8));
        text.append((char) (0xd000 | (bytes[i + 1] & 0x3f) << 6 | bytes[i + 2] & 0x3f));
        begin = i + 3;
        i += 2;
      }
    }
    return text == null
        ? decoded
        : text.append(new String(bytes, begin, count - begin, UTF_8)).toString();
  }

  private static boolean isPairAt(String text, int at) {
    return Character.isHighSurrogate(text.charAt(at))
        && at + 1 < text.length()
        && Character.isLowSurrogate(text.charAt(at + 1));
  }

  private static boolean hasQuestionMark(byte[] bytes) {
    int at = 0;
    for (; at <= bytes.length - Long.BYTES; at += Long.BYTES) {
      // A byte of it is 0 for each '?'.
      long different = (long) LONGS.get(bytes, at) ^ QUESTION_MARKS;
      if ((different - ONES & ~different & HIGH_BITS) != 0) {
        return true;
      }
    }
    for (; at < bytes.length; at++) {
      if (bytes[at] == '?') {
        return true;
      }
    }
    return false;
  }
}
