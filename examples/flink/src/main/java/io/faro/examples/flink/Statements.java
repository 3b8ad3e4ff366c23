package io.faro.examples.flink;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Takes text with several statements apart. */
final class Statements {
  /** What begins a set of statements, which ends by END. */
  private static final Pattern SET_BEGIN =
      Pattern.compile("(?is)\\s*(EXECUTE\\s+|EXPLAIN\\s+|COMPILE\\s+PLAN\\s+\\S.*\\sFOR\\s+)?(STATEMENT\\s+SET\\s+BEGIN|BEGIN\\s+STATEMENT\\s+SET)\\b.*");
  private static final Pattern SET_END = Pattern.compile("(?is)(.*;)?\\s*END\\s*");

  private Statements() {}

  /**
   * What stands between semicolons, except those in quotes, in comments and in a set of statements; nothing empty. Comments,
   * from two dashes to the end of the line or between slashes and asterisks, are left out, but hints are none.
   */
  static List<String> split(String text) {
    List<String> statements = new ArrayList<>();
    String rest = parse(text, statements);
    if (!rest.isBlank()) {
      statements.add(rest.strip());
    }
    return statements;
  }

  /** Whether the text ends with a semicolon that ends a statement, so that there is something to run. */
  static boolean isComplete(String text) {
    return parse(text, new ArrayList<>()).isBlank() && !endsInside(text);
  }

  // Adds statements that a semicolon has ended. Returns what is left.
  private static String parse(String text, List<String> statements) {
    StringBuilder begun = new StringBuilder();
    for (int i = 0; i < text.length(); ) {
      int end = endOf(text, i);
      if (isComment(text, i)) {
        begun.append(' ');
      } else if (end == i + 1 && text.charAt(i) == ';' && !isInSet(begun)) {
        add(begun, statements);
      } else {
        begun.append(text, i, end);
      }
      i = end;
    }
    return begun.toString();
  }

  private static boolean isComment(String text, int at) {
    return text.startsWith("--", at) || (text.startsWith("/*", at) && !text.startsWith("/*+", at));
  }

  // Behind the quoted text, the comment, the hint or the letter that begins there.
  private static int endOf(String text, int at) {
    if (text.startsWith("--", at)) {
      return behind(text, "\n", at);
    }
    if (text.startsWith("/*", at)) {
      return behind(text, "*/", at + 2);
    }
    char each = text.charAt(at);
    return each == '\'' || each == '`' ? behind(text, String.valueOf(each), at + 1) : at + 1;
  }

  private static int behind(String text, String end, int from) {
    int found = text.indexOf(end, from);
    return found < 0 ? text.length() : found + end.length();
  }

  private static boolean endsInside(String text) {
    for (int i = 0; i < text.length(); i = endOf(text, i)) {
      boolean isBlock = text.startsWith("/*", i);
      char each = text.charAt(i);
      if ((isBlock && text.indexOf("*/", i + 2) < 0)
          || ((each == '\'' || each == '`') && text.indexOf(each, i + 1) < 0)) {
        return true;
      }
    }
    return false;
  }

  // A semicolon behind that ends a statement of the set, or nothing yet.
  private static boolean isInSet(CharSequence begun) {
    Matcher set = SET_BEGIN.matcher(begun);
    return set.matches() && !SET_END.matcher(begun).matches();
  }

  private static void add(StringBuilder begun, List<String> statements) {
    if (!begun.toString().isBlank()) {
      statements.add(begun.toString().strip());
    }
    begun.setLength(0);
  }
}
