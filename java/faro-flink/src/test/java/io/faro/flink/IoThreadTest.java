package io.faro.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.Endpoint;
import io.faro.SessionConfig;
import io.faro.Setting;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** No command and no offer is lost, however they meet the I/O thread on its way to sleep. */
@Timeout(value = 60, unit = TimeUnit.SECONDS)
class IoThreadTest {
  private Endpoint endpoint;
  private IoThread io;

  private void start(int yields) {
    start(yields, new ConcurrentLinkedQueue<>());
  }

  private void start(int yields, Queue<IoThread.Command> queue) {
    endpoint = Endpoint.open(SessionConfig.builder().set(Setting.WAIT_YIELDS, yields).build());
    io =
        IoThread.start(
            endpoint.poller(0),
            "I/O of a test",
            (thread, channel) -> {
              throw new AssertionError("nobody dials");
            },
            queue);
  }

  @AfterEach
  void close() throws InterruptedException {
    endpoint.close();
    io.join(0);
  }

  @Test
  void aCommandThatComesBehindTheLastLookRuns() throws Exception {
    CompletableFuture<Void> ran = new CompletableFuture<>();
    CompletableFuture<IoThread> started = new CompletableFuture<>();
    start(
        20,
        new ConcurrentLinkedQueue<>() {
          private static final long serialVersionUID = 1L;
          private boolean looked;

          @Override
          public boolean isEmpty() {
            boolean wasEmpty = super.isEmpty();
            if (wasEmpty && !looked) {
              looked = true; // the thread will find the queue empty, and sleep; just now comes a command
              started.join().execute(() -> ran.complete(null));
            }
            return wasEmpty;
          }
        });
    started.complete(io);
    ran.get();
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 20})
  void everyCommandRuns(int yields) throws Exception {
    start(yields);
    for (int i = 0; i < 20_000; i++) {
      CompletableFuture<Void> ran = new CompletableFuture<>();
      io.execute(() -> ran.complete(null));
      ran.get();
    }
    assertTrue(io.wakeUps() > 0);
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 20})
  void everyOfferIsLookedAt(int yields) throws Exception {
    start(yields);
    AtomicInteger offered = new AtomicInteger();
    AtomicInteger seen = new AtomicInteger();
    for (int round = 1; round <= 5_000; round++) {
      CountDownLatch all = new CountDownLatch(1);
      int last = 3 * round;
      Coalesced offer =
          new Coalesced() {
            @Override
            void look() {
              seen.set(offered.get());
              if (seen.get() == last) {
                all.countDown();
              }
            }
          };
      for (int i = 0; i < 3; i++) {
        offered.incrementAndGet();
        offer.offerTo(io);
      }
      all.await();
    }
    assertEquals(15_000, seen.get());
  }

  @Test
  void aCommandThatFailsDoesNotStopTheOthers() throws Exception {
    start(20);
    CompletableFuture<Void> ran = new CompletableFuture<>();
    io.execute(
        () -> {
          throw new IllegalStateException("a command that fails");
        });
    io.execute(() -> ran.complete(null));
    ran.get();
  }

  @Test
  void aCommandRunsInPlaceOfTheThreadWhileThatSleeps() throws Exception {
    start(0);
    Thread test = Thread.currentThread();
    for (int i = 0; i < 1_000; i++) {
      CompletableFuture<Thread> ran = new CompletableFuture<>();
      CompletableFuture<Thread> handedOver = new CompletableFuture<>();
      IoThread.Command command =
          () -> {
            assertFalse(io.tryRun(() -> {}), "this thread is in its place already");
            io.execute(() -> handedOver.complete(Thread.currentThread()));
            ran.complete(Thread.currentThread());
          };
      while (!io.tryRun(command)) {
        Thread.onSpinWait(); // it does not sleep yet
      }
      assertEquals(test, ran.join());
      assertNotEquals(test, handedOver.get()); // it was woken for that
    }
  }

  @Test
  void aCommandThatFailsInPlaceOfTheThreadGivesThePlaceBack() throws Exception {
    start(0);
    IoThread.Command failing =
        () -> {
          throw new IllegalStateException("a command that fails");
        };
    while (!io.tryRun(failing)) {
      Thread.onSpinWait();
    }
    CompletableFuture<Void> ran = new CompletableFuture<>();
    io.execute(() -> ran.complete(null));
    ran.get();
  }

  @Test
  void nothingRunsInPlaceOfAThreadThatHasEnded() throws Exception {
    start(0);
    endpoint.close();
    io.join(0);
    assertFalse(io.tryRun(() -> {}));
  }

  @Test
  void commandsThatComeTooLateAreAbandoned() throws Exception {
    start(20);
    endpoint.close();
    io.join(0);
    CompletableFuture<String> ended = new CompletableFuture<>();
    io.execute(
        new IoThread.Command() {
          @Override
          public void run() {
            ended.complete("ran");
          }

          @Override
          public void abandon() {
            ended.complete("abandoned");
          }
        });
    assertEquals("abandoned", ended.get());
  }
}
