package io.faro;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;
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
  void constantsThatCrossTheBoundaryHaveTheSameNumbers() {
    List<String> java = new ArrayList<>();
    for (Outcome outcome : Outcome.values()) {
      java.add("outcome\t" + outcome.number() + "\t" + outcome.name().toLowerCase(Locale.ROOT));
      assertEquals(outcome, Outcome.of(outcome.number()));
    }
    for (Partition partition : Partition.values()) {
      java.add("partition\t" + partition.number() + "\t" + partition.name().toLowerCase(Locale.ROOT));
    }
    for (ChannelEvents.Kind kind : ChannelEvents.Kind.values()) {
      java.add("channel_event\t" + kind.number() + "\t" + kind.name().toLowerCase(Locale.ROOT));
    }
    for (WakeFor wakeFor : WakeFor.values()) {
      java.add("wake_for\t" + wakeFor.number() + "\t" + wakeFor.name().toLowerCase(Locale.ROOT));
    }
    for (Delivery delivery : Delivery.values()) {
      java.add("delivery\t" + delivery.number() + "\t" + delivery.name().toLowerCase(Locale.ROOT));
    }
    for (ColumnType type : ColumnType.values()) {
      java.add("column\t" + type.number() + "\t" + type.name().toLowerCase(Locale.ROOT));
    }
    for (Aggregate.Function function : Aggregate.Function.values()) {
      java.add("function\t" + function.number() + "\t" + function.name().toLowerCase(Locale.ROOT));
    }
    new TreeMap<>(NativeLog.LEVELS)
        .forEach((number, level) -> java.add("level\t" + number + "\t" + level.name().toLowerCase(Locale.ROOT)));
    assertEquals(lines(SessionConfig.constants()), java);
  }

  @Test
  void settingsDefaultsAndDescriptionsAreTheSame() throws Exception {
    Map<String, String> descriptions = descriptions();
    List<String> java =
        Arrays.stream(Setting.values())
            .map(
                setting ->
                    String.join(
                        "\t", setting.key(), setting.defaultValue(), descriptions.get(setting.key())))
            .collect(Collectors.toList());
    assertEquals(lines(SessionConfig.table()), java);
  }

  /** What the javadoc of each key's constant says, without the final stop. */
  private static Map<String, String> descriptions() throws Exception {
    String source = Files.readString(Path.of("src/main/java/io/faro/Setting.java"));
    Pattern constant =
        Pattern.compile("/\\*\\*((?:(?!\\*/).)*)\\*/\\s*\\w+\\(\\s*\"([^\"]*)\"", Pattern.DOTALL);
    return constant
        .matcher(source)
        .results()
        .collect(
            Collectors.toMap(
                found -> found.group(2),
                found ->
                    found
                        .group(1)
                        .replaceAll("\\n *\\* ", " ")
                        .strip()
                        .replaceAll("\\s+", " ")
                        .replaceAll("\\.$", "")));
  }
}
