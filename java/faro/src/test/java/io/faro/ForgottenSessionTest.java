package io.faro;

import static io.faro.Checks.failure;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.ref.WeakReference;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.logging.LogRecord;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(30)
class ForgottenSessionTest {
  private final BlockingQueue<LogRecord> lines = new LinkedBlockingQueue<>();
  private final LogLines reader = new LogLines(lines::add);

  @AfterEach
  void close() {
    reader.close();
  }

  private static SessionConfig config(List<String> address) {
    return SessionConfig.builder().cluster(0, address).build();
  }

  private static void openAndForget(SessionConfig config) throws InterruptedException {
    Session.open(config).registerBeans();
  }

  private LogRecord collectUntilReported() throws InterruptedException {
    for (long end = System.nanoTime() + 20_000_000_000L; System.nanoTime() < end; ) {
      System.gc();
      LogRecord line = lines.poll(10, TimeUnit.MILLISECONDS);
      if (line != null && line.getThrown() != null) {
        return line;
      }
    }
    throw new AssertionError("no report");
  }

  @Test
  void isReportedWithWhereItWasOpenedAndClosed() throws Exception {
    List<String> address = Cluster.heldAddresses(1);
    openAndForget(config(address));
    LogRecord report = collectUntilReported();
    assertTrue(report.getMessage().contains("was forgotten"), report.getMessage());
    assertTrue(
        Arrays.stream(report.getThrown().getStackTrace())
            .anyMatch(frame -> frame.getMethodName().equals("openAndForget")));
    // It was closed: its address is free again.
    for (long end = System.nanoTime() + 20_000_000_000L; ; ) {
      try {
        Session.open(config(address)).close();
        break;
      } catch (FaroException taken) {
        assertEquals(Code.ADDRESS_IN_USE, taken.code());
        assertTrue(System.nanoTime() < end, "it was not closed");
      }
    }
  }

  @Test
  void oneWhoseShuffleIsInUseIsNotForgotten() throws Exception {
    Shuffle shuffle = openKeepingTheShuffleOnly();
    WeakReference<Object> garbage = new WeakReference<>(new Object());
    for (int i = 0; i < 5 || garbage.get() != null; i++) {
      System.gc();
    }
    shuffle.sender().longs().send(0, 1, Wait.NONE);
    assertEquals(Outcome.DONE, shuffle.sender().finish(Wait.NONE));
    shuffle.close();
    shuffle.worker().session().close();
    assertTrue(lines.stream().allMatch(line -> line.getThrown() == null));
    failure(() -> shuffle.worker().session().beginQuery());
  }

  private static Shuffle openKeepingTheShuffleOnly() throws InterruptedException {
    Session session = Session.open(config(Cluster.heldAddresses(1)));
    return session.workers().get(0).openShuffle(new ShuffleSpec(session.beginQuery(), 1, 8));
  }
}
