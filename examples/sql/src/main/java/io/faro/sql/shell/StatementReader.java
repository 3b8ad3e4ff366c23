package io.faro.sql.shell;

/** Makes statements of lines. */
final class StatementReader {
  /** What ends the shell. */
  static final String QUIT = "\\q";

  private final StringBuilder begun = new StringBuilder();

  /** Whether the next line begins a statement. */
  boolean isEmpty() {
    return begun.isEmpty();
  }

  /** Forgets what was begun. */
  void clear() {
    begun.setLength(0);
  }

  /** The statement that ends with this line, without its semicolon, or a line of {@code \}; null: none yet. */
  String add(String line) {
    String text = line.strip();
    if (isEmpty() && (text.isEmpty() || text.startsWith("\\"))) {
      return text.isEmpty() ? null : text;
    }
    begun.append(text).append('\n');
    if (!text.endsWith(";")) {
      return null;
    }
    String statement = begun.substring(0, begun.lastIndexOf(";"));
    clear();
    return statement;
  }
}
