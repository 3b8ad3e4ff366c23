package io.faro.examples.flink;

import java.util.ArrayList;
import java.util.List;

/** Takes text with several statements apart. */
final class Statements {
  private Statements() {}

  /** What stands between semicolons, except those in quotes; nothing empty. Comments, from two dashes on, are left out. */
  static List<String> split(String text) {
    List<String> statements = new ArrayList<>();
    StringBuilder begun = new StringBuilder();
    char quote = 0;
    boolean isComment = false;
    for (int i = 0; i < text.length(); i++) {
      char each = text.charAt(i);
      isComment = isComment ? each != '\n' : quote == 0 && text.startsWith("--", i);
      if (isComment) {
        continue;
      }
      if (quote == 0 && each == ';') {
        add(begun, statements);
      } else {
        if (quote == 0 && (each == '\'' || each == '`')) {
          quote = each;
        } else if (each == quote) {
          quote = 0;
        }
        begun.append(each);
      }
    }
    add(begun, statements);
    return statements;
  }

  private static void add(StringBuilder begun, List<String> statements) {
    if (!begun.toString().isBlank()) {
      statements.add(begun.toString().strip());
    }
    begun.setLength(0);
  }
}
