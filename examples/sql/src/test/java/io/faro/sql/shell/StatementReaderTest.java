package io.faro.sql.shell;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class StatementReaderTest {
  private final StatementReader reader = new StatementReader();

  @Test
  void aStatementEndsWithASemicolonAtTheEndOfALine() {
    assertNull(reader.add(""));
    assertNull(reader.add("select ';',"));
    assertFalse(reader.isEmpty());
    assertNull(reader.add("\\q"));
    assertEquals("select ';',\n\\q\n1", reader.add(" 1; "));
    assertTrue(reader.isEmpty());
    assertEquals("select 2", reader.add("select 2;"));
  }

  @Test
  void aLineWithABackslashIsOneByItself() {
    assertEquals(StatementReader.QUIT, reader.add(" \\q "));
    assertEquals("\\d orders", reader.add("\\d orders"));
  }

  @Test
  void whatWasBegunCanBeForgotten() {
    assertNull(reader.add("select"));
    reader.clear();
    assertEquals("select 1", reader.add("select 1;"));
  }
}
