package io.faro;

/** How many bytes strings take. */
final class Utf8 {
  private static final int SHORT = 256;

  private Utf8() {}

  /** An upper limit: three bytes a char for short strings, exact for long ones of whole characters. */
  static int maxBytes(String text) {
    int chars = text.length();
    if (chars <= SHORT) {
      return 3 * chars;
    }
    long bytes = chars;
    for (int i = 0; i < chars; i++) {
      char unit = text.charAt(i);
      // Of a pair of surrogates, which is four bytes, each is two.
      bytes += unit < 0x80 ? 0 : unit < 0x800 || Character.isSurrogate(unit) ? 1 : 2;
    }
    return Math.toIntExact(bytes);
  }
}
