package io.faro;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.function.Consumer;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Native lines, at the System.Logger. */
@Timeout(20)
class LogTest {
  private LogLines lines;

  private void read(Consumer<LogRecord> reader) {
    lines = new LogLines(reader);
  }

  @AfterEach
  void close() {
    lines.close();
  }

  private static void failAQuery(Session session) {
    session.cancelQuery(session.beginQuery(), "told to the log");
  }

  @Test
  void whatWasLoggedIsWrittenWhenCloseReturns() {
    List<LogRecord> seen = new CopyOnWriteArrayList<>();
    read(seen::add);
    try (Cluster cluster = new Cluster("auto", 1, 1)) {
      failAQuery(cluster.session(0));
    }
    List<LogRecord> told =
        seen.stream().filter(line -> line.getMessage().contains("told to the log")).toList();
    assertEquals(1, told.size(), seen::toString);
    assertEquals(Level.WARNING, told.get(0).getLevel());
    assertEquals("io.faro", told.get(0).getLoggerName());
    assertNull(told.get(0).getSourceClassName(), "the class that passes lines on has not said it");
  }

  @Test
  void aLoggerThatWaitsForWhoeverClosesHoldsUpNothingForEver() throws Exception {
    CountDownLatch inLogger = new CountDownLatch(1);
    CountDownLatch closed = new CountDownLatch(1);
    read(
        line -> {
          inLogger.countDown();
          try {
            closed.await();
          } catch (InterruptedException unexpected) {
            throw new AssertionError(unexpected);
          }
        });
    Cluster cluster = new Cluster("auto", 1, 1);
    failAQuery(cluster.session(0));
    inLogger.await();
    cluster.close();
    closed.countDown();
  }

  @Test
  void linesThatALoggerDoesNotTakeAreCountedInTheirPlace() throws Exception {
    String dropped = " lines were dropped here: the logger took no more";
    List<String> seen = new CopyOnWriteArrayList<>();
    CountDownLatch inLogger = new CountDownLatch(1);
    CountDownLatch goesOn = new CountDownLatch(1);
    CountDownLatch counted = new CountDownLatch(1);
    read(
        line -> {
          seen.add(line.getMessage());
          inLogger.countDown();
          if (line.getMessage().endsWith(dropped)) counted.countDown();
          try {
            goesOn.await();
          } catch (InterruptedException unexpected) {
            throw new AssertionError(unexpected);
          }
        });
    Logger logger = Logger.getLogger("io.faro");
    logger.setUseParentHandlers(false); // nobody wants to read thousands of them
    int lines = 5000;
    try (Cluster cluster = new Cluster("auto", 1, 1)) {
      failAQuery(cluster.session(0));
      inLogger.await();
      for (int i = 1; i < lines; i++) failAQuery(cluster.session(0));
      goesOn.countDown();
      counted.await();
    } finally {
      logger.setUseParentHandlers(true);
    }
    long told = seen.stream().filter(line -> line.contains("told to the log")).count();
    assertTrue(told > 4000 && told < lines, "the queue holds them: " + told);
    assertEquals((lines - told) + dropped, seen.stream().filter(line -> line.endsWith(dropped)).findFirst().orElse(""));
  }

  @Test
  void aLoggerThatThrowsIsAskedAgain() {
    List<String> seen = new CopyOnWriteArrayList<>();
    read(
        line -> {
          seen.add(line.getMessage());
          throw new IllegalStateException("broken");
        });
    try (Cluster cluster = new Cluster("auto", 1, 1)) {
      failAQuery(cluster.session(0));
      failAQuery(cluster.session(0));
    }
    assertEquals(2, seen.stream().filter(line -> line.contains("told to the log")).count(), seen::toString);
  }
}
