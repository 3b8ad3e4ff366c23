package io.faro.bench;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class CpuClockTest {
  private static final long BURNT = 50_000_000;

  @Test
  void aThreadThatHasEndedStillCounts() throws Exception {
    CpuClock clock = new CpuClock();
    CountDownLatch burnt = new CountDownLatch(1);
    CountDownLatch looked = new CountDownLatch(1);
    FutureTask<Void> burning =
        new FutureTask<>(
            () -> {
              long begin = threadNanos();
              while (threadNanos() - begin < BURNT) {
                Thread.onSpinWait();
              }
              burnt.countDown();
              looked.await();
              return null;
            });
    Thread thread = new Thread(burning);
    long before = clock.nanos();
    thread.start();
    burnt.await();
    long during = clock.nanos();
    looked.countDown();
    thread.join();
    assertTrue(during - before >= BURNT, during - before + " ns");
    assertTrue(clock.nanos() >= during, "the time of the ended thread is gone");
  }

  private static long threadNanos() {
    return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
  }
}
