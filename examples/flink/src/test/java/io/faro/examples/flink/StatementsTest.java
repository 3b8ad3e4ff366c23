package io.faro.examples.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What is one statement, and what is none. */
class StatementsTest {
  private static void areOf(String text, String... statements) {
    assertEquals(List.of(statements), Statements.split(text));
  }

  @Test
  void semicolonsPartStatementsUnlessTheyAreQuoted() {
    areOf("");
    areOf(";;");
    areOf("a", "a");
    areOf("a; b;", "a", "b");
    areOf("select ';' ; b", "select ';'", "b");
    areOf("select 'it''s; x', `a;b`; c", "select 'it''s; x', `a;b`", "c");
  }

  @Test
  void commentsAreLeftOutAndHintsAreNone() {
    areOf("a -- x; y\n; c", "a", "c");
    areOf("select 1 -- no end", "select 1");
    areOf("/* x; it's */ a; b /* ; */ c", "a", "b   c");
    areOf("select '/* none */'; '--none'", "select '/* none */'", "'--none'");
    areOf("select /*+ OPTIONS('a;b'='c') */ 1; b", "select /*+ OPTIONS('a;b'='c') */ 1", "b");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "EXECUTE STATEMENT SET BEGIN insert into a select 1; insert into b select 2; END",
        "begin statement set; insert into a select 1; end",
        "explain statement set\nbegin insert into a select ';'; end",
        "/* all */ EXECUTE STATEMENT SET BEGIN insert into a select 1; END",
      })
  void aSetOfStatementsIsOne(String set) {
    areOf(set + "; select 3;", set.replace("/* all */ ", ""), "select 3");
    assertTrue(Statements.isComplete(set + ";"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"a;", "a; -- x", "a; /* b */\n", "a;\n\n"})
  void whatEndsWithASemicolonIsComplete(String text) {
    assertTrue(Statements.isComplete(text));
  }

  @ParameterizedTest
  @ValueSource(strings = {"a", "a; b", "select ';", "a; /* b;", "a -- ;", "EXECUTE STATEMENT SET BEGIN a;"})
  void whatDoesNotIsNot(String text) {
    assertFalse(Statements.isComplete(text));
  }
}
