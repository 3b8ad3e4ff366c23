package io.faro;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

class Utf8Test {
  // One of each length, both kinds of surrogates, and what the JDK makes of those.
  private static final char[] UNITS = {'a', '?', '\u00e9', '\u20ac', '\ufffd', '\ud800', '\udbff', '\udc00', '\udfff'};

  /** All strings of up to that many of these units. */
  private static List<String> strings(int length) {
    List<String> all = new ArrayList<>(List.of(""));
    for (int begin = 0, i = 0; i < length; i++) {
      int end = all.size();
      for (; begin < end; begin++) {
        for (char unit : UNITS) {
          all.add(all.get(begin) + unit);
        }
      }
    }
    return all;
  }

  private static String decoded(byte[] bytes) {
    return Utf8.decode(bytes, bytes.length);
  }

  @Test
  void everyStringComesBack() {
    for (String text : strings(5)) {
      byte[] bytes = Utf8.encode(text);
      assertEquals(text, decoded(bytes));
      assertTrue(bytes.length <= Utf8.maxBytes(text));
    }
  }

  @Test
  void whatUtf8CanSayIsUtf8() {
    for (String text : strings(5)) {
      if (UTF_8.newEncoder().canEncode(text)) {
        assertArrayEquals(text.getBytes(UTF_8), Utf8.encode(text));
      }
    }
  }

  @Test
  void theLimitOfALongStringIsExact() {
    for (String text : strings(4)) {
      String longText = text + "x".repeat(300) + text;
      assertEquals(Utf8.encode(longText).length, Utf8.maxBytes(longText));
      assertEquals(longText, decoded(Utf8.encode(longText)));
    }
  }

  @Test
  void aSurrogateIsFoundAtEveryPlace() {
    for (int place = 0; place < 40; place++) {
      String text = "x".repeat(place) + '\ud812' + "y".repeat(40 - place);
      assertEquals(text, decoded(Utf8.encode(text)));
    }
  }

  @Test
  void bytesThatAreNoUtf8AreReadAsTheJdkReadsThem() {
    byte[][] wrong = {{-1}, {(byte) 0xed}, {(byte) 0xed, (byte) 0xa0}, {(byte) 0xed, (byte) 0xa0, 'x'}, {'a', (byte) 0x80}};
    for (byte[] bytes : wrong) {
      assertEquals(new String(bytes, UTF_8), decoded(bytes));
    }
    byte[] cut = Arrays.copyOf(Utf8.encode("\ud800\u20ac"), 5);
    assertEquals("\ud800\ufffd", decoded(cut));
  }
}
