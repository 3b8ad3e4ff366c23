package io.faro;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** What is listed in C++ and in Java is the same. */
class NativeTablesTest {
  @BeforeAll
  static void load() {
    Faro.ensureAvailable();
  }

  private static List<String> lines(byte[] text) {
    return new String(text, UTF_8).lines().collect(Collectors.toList());
  }

  @Test
  void isAvailable() {
    assertTrue(Faro.isAvailable());
    assertEquals(null, Faro.unavailabilityCause());
  }

  @Test
  void codesAndCategoriesAreTheSame() {
    List<String> java =
        Arrays.stream(Code.values())
            .map(code -> String.join("\t", "" + code.number(), code.name(), code.category().name()))
            .map(line -> line.toLowerCase(Locale.ROOT))
            .collect(Collectors.toList());
    java.add(0, "0\tok\tnone");
    assertEquals(lines(SessionConfig.codes()), java);
  }

  @Test
  void settingsAndDefaultsAreTheSame() {
    List<String> java =
        Arrays.stream(Setting.values())
            .map(setting -> setting.key() + "\t" + setting.defaultValue())
            .collect(Collectors.toList());
    assertEquals(lines(SessionConfig.table()), java);
  }
}
