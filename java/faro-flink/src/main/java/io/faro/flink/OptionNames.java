package io.faro.flink;

import io.faro.Setting;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.IllegalConfigurationException;

/**
 * The keys of Flink's configuration that are Faro's. All are known, so what looks like one and is
 * none was misspelt.
 *
 * <p>Threads: any. Loads no native library: the JobManager looks, too.
 */
final class OptionNames {
  /** Keys that are meant for Faro, however they go on. */
  private static final Pattern MEANT = Pattern.compile("(?i)faro([^a-z0-9].*)?");

  private static final List<String> OPTIONS =
      Stream.of(
              FaroOptions.IO_THREADS,
              FaroOptions.LINKS_PER_PEER,
              FaroOptions.MEMORY_LIMIT,
              FaroOptions.LINKS_EXPECTED,
              FaroOptions.RING_SIZE,
              FaroOptions.TRANSPORT,
              FaroOptions.FALLBACK,
              FaroOptions.SECRET,
              FaroOptions.SECRET_FILE,
              FaroOptions.LIVENESS_TIMEOUT,
              FaroOptions.CONNECT_TIMEOUT,
              FaroOptions.CLUSTER_ID)
          .map(ConfigOption::key)
          .toList();

  private static final List<String> KNOWN =
      Stream.concat(
              OPTIONS.stream(),
              Arrays.stream(Setting.values()).map(each -> FaroOptions.SETTING_PREFIX + each.key()))
          .toList();

  /** What an operator has set for a setting that Faro's own messages name. */
  private static final List<String[]> SET_BY =
      List.of(
          new String[] {Setting.MEMORY_LIMIT_BYTES.key(), FaroOptions.MEMORY_LIMIT.key()},
          new String[] {Setting.LIVENESS_TIMEOUT_MS.key(), FaroOptions.LIVENESS_TIMEOUT.key()},
          new String[] {Setting.CONNECT_TIMEOUT_MS.key(), FaroOptions.CONNECT_TIMEOUT.key()},
          new String[] {Setting.CLUSTER_ID.key(), FaroOptions.CLUSTER_ID.key()},
          new String[] {Setting.SECURITY_SECRET_FILE.key(), FaroOptions.SECRET_FILE.key()});

  private static final Pattern SETTINGS =
      Pattern.compile(
          Arrays.stream(Setting.values())
              .map(Setting::key)
              .filter(key -> key.indexOf('.') > 0) // "transport" is a word, too
              .sorted(Comparator.comparing(String::length).reversed())
              .map(Pattern::quote)
              .reduce((one, other) -> one + "|" + other)
              .map(all -> "(?<![\\w.-])(" + all + ")(?![\\w-])(?!\\.\\w)")
              .orElseThrow());

  private OptionNames() {}

  /** All options and settings, by their keys. */
  static List<String> known() {
    return KNOWN;
  }

  /**
   * @throws IllegalConfigurationException if a key is meant for Faro, and Faro has none of that
   *     name; it names the nearest
   */
  static void check(Configuration configuration) {
    List<String> unknown = new ArrayList<>();
    for (String key : new TreeSet<>(configuration.keySet())) {
      if (MEANT.matcher(key).matches() && !KNOWN.contains(key)) {
        unknown.add(complaint(key));
      }
    }
    if (!unknown.isEmpty()) {
      throw new IllegalConfigurationException(String.join(" ", unknown));
    }
  }

  private static String complaint(String key) {
    String lacking =
        key.startsWith(FaroOptions.SETTING_PREFIX)
            ? "Faro has no setting " + key.substring(FaroOptions.SETTING_PREFIX.length())
            : "Faro has no such option";
    return key + ": " + lacking + "; the nearest is " + nearest(key) + ".";
  }

  /** The key that differs least; of several the shortest. */
  static String nearest(String key) {
    String given = key.toLowerCase(Locale.ROOT);
    return KNOWN.stream()
        .min(
            Comparator.comparingInt((String each) -> distance(given, each))
                .thenComparing(String::length))
        .orElseThrow();
  }

  // A setting may have been given without the word that says that it is one.
  private static int distance(String given, String known) {
    int whole = difference(given, known);
    return known.startsWith(FaroOptions.SETTING_PREFIX)
        ? Math.min(
            whole,
            difference(given, "faro." + known.substring(FaroOptions.SETTING_PREFIX.length())) + 1)
        : whole;
  }

  /** How many letters have to be changed, left out, put in, or swapped with their neighbour. */
  static int difference(String one, String other) {
    int[][] least = new int[one.length() + 1][other.length() + 1];
    for (int i = 0; i <= one.length(); i++) {
      for (int j = 0; j <= other.length(); j++) {
        if (i == 0 || j == 0) {
          least[i][j] = i + j;
          continue;
        }
        int change = one.charAt(i - 1) == other.charAt(j - 1) ? 0 : 1;
        least[i][j] =
            Math.min(least[i - 1][j - 1] + change, 1 + Math.min(least[i - 1][j], least[i][j - 1]));
        boolean isSwapped =
            i > 1
                && j > 1
                && one.charAt(i - 1) == other.charAt(j - 2)
                && one.charAt(i - 2) == other.charAt(j - 1);
        if (isSwapped) {
          least[i][j] = Math.min(least[i][j], least[i - 2][j - 2] + 1);
        }
      }
    }
    return least[one.length()][other.length()];
  }

  /**
   * What Faro itself says, with the keys that an operator of Flink sets in the place of its own.
   */
  static String inFlinksKeys(String text) {
    return text == null
        ? null
        : SETTINGS
            .matcher(text)
            .replaceAll(found -> Matcher.quoteReplacement(flinksKey(found.group())));
  }

  private static String flinksKey(String setting) {
    return SET_BY.stream()
        .filter(each -> each[0].equals(setting))
        .map(each -> each[1])
        .findAny()
        .orElse(FaroOptions.SETTING_PREFIX + setting);
  }
}
