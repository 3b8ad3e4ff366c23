package io.faro;

import static io.faro.Checks.codeOf;
import static io.faro.Checks.inThread;
import static io.faro.Checks.start;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** How a poller of an endpoint waits, and what ends that. */
@Timeout(60)
class PollerWaitTest {
  private static final ChannelSpec SMALL = new ChannelSpec().withRings(4096, 4096);

  @Test
  void waitsNoLongerThanItIsTold() throws Exception {
    try (EndpointSide side = new EndpointSide("shm")) {
      Poller poller = side.poller;
      assertEquals(Outcome.WOULD_WAIT, poller.await(Wait.NONE));
      assertEquals(Outcome.DEADLINE, poller.await(Wait.atMost(Duration.ZERO)));
      assertEquals(Outcome.DEADLINE, poller.await(Wait.atMost(Duration.ofMillis(1))));
      poller.wake();
      poller.wake();
      assertEquals(Outcome.DONE, poller.await());
      assertEquals(Outcome.WOULD_WAIT, poller.await(Wait.NONE));
      poller.wake();
      assertEquals(Outcome.DONE, poller.await(Wait.NONE));
    }
  }

  /** Each wake-up comes before the poller has looked at what it is for, or ends a later wait. */
  @Test
  void noWakeUpOfManyThreadsIsLost() throws Exception {
    int wakers = 3;
    int each = 20_000;
    try (EndpointSide side = new EndpointSide("shm")) {
      AtomicInteger work = new AtomicInteger();
      List<FutureTask<Void>> threads = new ArrayList<>();
      for (int w = 0; w < wakers; w++) {
        threads.add(
            start(
                () -> {
                  for (int i = 0; i < each; i++) {
                    work.incrementAndGet();
                    side.poller.wake();
                  }
                  return null;
                }));
      }
      for (int done = 0; done < wakers * each; done += work.getAndSet(0)) {
        assertEquals(Outcome.DONE, side.poller.await(EndpointSide.AT_MOST));
      }
      for (FutureTask<Void> thread : threads) {
        thread.get();
      }
    }
  }

  @Test
  void anInterruptEndsAWaitAndLosesNothing() throws Exception {
    try (ChannelPair pair = new ChannelPair("shm", SMALL)) {
      Poller poller = pair.client.poller;
      Thread.currentThread().interrupt();
      assertThrows(InterruptedException.class, poller::await);
      assertFalse(Thread.interrupted());
      for (int i = 0; i < 200; i++) { // before, while or after it begins to wait
        Thread self = Thread.currentThread();
        FutureTask<Void> other =
            start(
                () -> {
                  self.interrupt();
                  return null;
                });
        assertThrows(InterruptedException.class, () -> awaitForever(poller));
        other.get();
        assertFalse(Thread.interrupted());
      }
      poller.wake();
      Thread.currentThread().interrupt();
      assertThrows(InterruptedException.class, poller::await);
      assertEquals(Outcome.DONE, poller.await()); // the wake-up was not lost
      assertTrue(pair.server.send(pair.atServer, "there"));
      Thread.currentThread().interrupt();
      assertThrows(InterruptedException.class, poller::await);
      pair.client.expectFrame("there");
      // Without waiting an interrupt changes nothing.
      poller.await(Wait.NONE);
      Thread.currentThread().interrupt();
      poller.await(Wait.NONE);
      assertTrue(Thread.interrupted());
    }
  }

  private static void awaitForever(Poller poller) throws InterruptedException {
    while (poller.await() == Outcome.DONE) {
      poller.poll(new ChannelEvents(1));
    }
  }

  @Test
  void closingEndsAWait() throws Exception {
    EndpointSide side = new EndpointSide("shm");
    FutureTask<Code> waiting = start(() -> codeOf(side.poller::await));
    side.close();
    assertEquals(Code.CLOSED, waiting.get());
  }

  @Test
  void anotherThreadSendsWhileThePollerSleeps() throws Exception {
    try (ChannelPair pair = new ChannelPair("shm", SMALL)) {
      Poller poller = pair.client.poller;
      assertFalse(poller.tryEnter()); // it does not sleep
      assertEquals(Code.WRONG_STATE, codeOf(poller::leave));
      AtomicBoolean sent = new AtomicBoolean();
      FutureTask<Void> other =
          start(
              () -> {
                assertEquals(Code.WRONG_STATE, codeOf(() -> poller.claim(pair.atClient, 1, 1)));
                while (!poller.tryEnter()) {
                  Thread.onSpinWait();
                }
                try {
                  assertFalse(poller.tryEnter());
                  assertEquals(Code.WRONG_STATE, codeOf(() -> poller.await(Wait.NONE)));
                  assertTrue(pair.client.send(pair.atClient, "by another thread"));
                } finally {
                  poller.leave();
                }
                assertEquals(Code.WRONG_STATE, codeOf(poller::leave));
                sent.set(true);
                poller.wake();
                return null;
              });
      while (!sent.get()) {
        assertEquals(Outcome.DONE, poller.await(EndpointSide.AT_MOST));
      }
      other.get();
      pair.server.expectFrame("by another thread");
      assertTrue(pair.client.send(pair.atClient, "by its own"));
      pair.server.expectFrame("by its own");
    }
  }

  @Test
  void aPollerBelongsToOneThreadUntilThatReleasesIt() throws Exception {
    try (EndpointSide side = new EndpointSide("shm")) {
      assertEquals(Outcome.WOULD_WAIT, side.poller.await(Wait.NONE));
      assertEquals(Code.WRONG_STATE, inThread(() -> codeOf(side.poller::post)));
      side.poller.releaseOwnership();
      Thread other = new Thread(side.poller::post);
      other.start();
      other.join();
      side.poller.post(); // that thread has ended
    }
  }

  /** Taken for a virtual thread. */
  private static final class Virtual extends Thread {
    Virtual(Runnable body) {
      super(body);
    }
  }

  @Test
  void aVirtualThreadWaitsWithoutANativeCallOfItsOwn() throws Exception {
    VirtualThreads.alsoForTest(Virtual.class);
    try (ChannelPair pair = new ChannelPair("shm", SMALL)) {
      Poller poller = pair.server.poller;
      poller.releaseOwnership();
      AtomicInteger step = new AtomicInteger();
      FutureTask<Code> task =
          new FutureTask<>(
              () -> {
                assertEquals(Outcome.DEADLINE, poller.await(Wait.atMost(Duration.ofMillis(1))));
                step.set(1);
                pair.server.expectFrame("hello");
                step.set(2);
                assertThrows(InterruptedException.class, () -> awaitForever(poller));
                step.set(3);
                return codeOf(() -> awaitForever(poller));
              });
      Virtual thread = new Virtual(task);
      thread.start();
      awaitApart(thread, step, 1);
      assertTrue(pair.client.send(pair.atClient, "hello"));
      awaitApart(thread, step, 2);
      thread.interrupt();
      awaitApart(thread, step, 3);
      pair.server.close();
      assertEquals(Code.CLOSED, task.get());
    } finally {
      VirtualThreads.alsoForTest(null);
    }
  }

  /** Until the thread waits in Java, in that step. */
  private static void awaitApart(Virtual thread, AtomicInteger step, int wanted) {
    while (step.get() != wanted
        || Arrays.stream(thread.getStackTrace()).noneMatch(frame -> frame.getMethodName().equals("awaitApart"))) {
      assertTrue(thread.isAlive());
      Thread.onSpinWait();
    }
  }
}
