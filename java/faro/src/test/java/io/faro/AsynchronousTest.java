package io.faro;

import static io.faro.Checks.failsBy;
import static io.faro.Checks.failure;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Everything that waits can be done without waiting, and ends when it is interrupted. */
@Timeout(20)
class AsynchronousTest {
  private static final Duration LONG = Duration.ofHours(1);

  private static SessionConfig config(int node, List<String> nodes) {
    return Cluster.config(node, nodes).set(Setting.CONNECT_TIMEOUT_MS, 600_000).build();
  }

  /**
   * Interrupts a call that waits in another thread: before it is made, then, made again, when {@code waits} says that it
   * waits. It has to end with an {@link InterruptedException} both times.
   */
  private static void isInterruptible(Callable<?> call, Predicate<Thread> waits) throws Exception {
    for (Predicate<Thread> moment : List.<Predicate<Thread>>of(thread -> true, waits)) {
      boolean isEarly = moment != waits;
      FutureTask<Throwable> task =
          new FutureTask<>(
              () -> {
                if (isEarly) {
                  Thread.currentThread().interrupt();
                }
                Throwable thrown = assertThrows(Throwable.class, call::call);
                assertFalse(Thread.currentThread().isInterrupted(), thrown::toString);
                return thrown;
              });
      Thread thread = new Thread(task);
      thread.start();
      while (!isEarly && !waits.test(thread)) {
        assertFalse(task.isDone(), "it did not wait");
        Thread.onSpinWait();
      }
      if (!isEarly) {
        thread.interrupt();
      }
      assertInstanceOf(InterruptedException.class, task.get(), isEarly ? "interrupted before" : "interrupted in it");
      thread.join(); // what it owned belongs to nobody then
    }
  }

  private static FaroException causeOf(CompletableFuture<?> failed) {
    return assertInstanceOf(FaroException.class, assertThrows(ExecutionException.class, failed::get).getCause());
  }

  private static boolean isParked(Thread thread) {
    return thread.getState() == Thread.State.WAITING;
  }

  private static void awaitGone(Session session, int node) {
    while (session.hasNode(node)) {
      Thread.onSpinWait();
    }
  }

  @Test
  void anInterruptEndsAnOpenThatCanBeMadeAgain() throws Exception {
    List<String> nodes = Cluster.heldAddresses(2);
    isInterruptible(() -> Session.open(config(0, nodes)), AsynchronousTest::isParked);
    CompletableFuture<Session> second = Session.openAsync(config(1, nodes)).toCompletableFuture();
    try (Session first = Session.open(config(0, nodes));
        Session other = second.get()) {
      assertTrue(first.hasNode(1));
      assertTrue(other.hasNode(0));
    }
  }

  @Test
  void anInterruptEndsWaitingForANode() throws Exception {
    try (Cluster cluster = new Cluster("tcp", 2, 1)) {
      Session session = cluster.session(0);
      cluster.session(1).close();
      awaitGone(session, 1);
      assertFalse(session.awaitNode(1, Wait.atMost(Duration.ZERO)));
      isInterruptible(() -> session.awaitNode(1, Wait.atMost(LONG)), AsynchronousTest::isParked);
    }
  }

  @Test
  void anInterruptEndsTheWaitsOfAWorker() throws Exception {
    try (Cluster cluster = new Cluster("shm", 1, 2)) {
      QueryId query = cluster.beginQuery();
      Worker worker = cluster.worker(0);
      AtomicInteger stage = new AtomicInteger();
      for (Callable<?> wait :
          List.<Callable<?>>of(
              () -> worker.waitUntil(() -> false),
              () -> {
                ShuffleSpec spec = new ShuffleSpec(query, stage.incrementAndGet(), 0, new int[] {1}, new int[] {0});
                try (Shuffle shuffle = worker.openShuffle(spec);
                    Batch batch = shuffle.receiver().newBatch()) {
                  try {
                    return shuffle.receiver().receive(batch);
                  } finally {
                    shuffle.receiver().stop();
                  }
                }
              },
              () -> {
                worker.endQuery(query);
                return null;
              })) {
        AtomicLong before = new AtomicLong(-1);
        isInterruptible(
            wait,
            thread -> {
              long sleeps = cluster.session(0).metrics().workers().get(0).sleeps();
              return !before.compareAndSet(-1, sleeps) && sleeps > before.get();
            });
      }
    }
  }

  @Test
  void anOpenThatIsCancelledGivesItsAddressBack() throws Exception {
    List<String> nodes = Cluster.heldAddresses(2);
    CompletableFuture<Session> cancelled = Session.openAsync(config(0, nodes)).toCompletableFuture();
    CompletableFuture<Session> second = Session.openAsync(config(1, nodes)).toCompletableFuture();
    cancelled.cancel(false);
    assertTrue(cancelled.isCancelled());
    second.cancel(false); // it may have been done
    // Both have ended, or are about to: what they held becomes free.
    for (int node = 0; node < 2; node++) {
      assertEquals(0, openAlone(nodes.get(node)).node());
    }
  }

  // Waits for the address.
  private static Session openAlone(String address) throws Exception {
    for (; ; ) {
      try (Session session = Session.open(Cluster.config(0, List.of(address)).build())) {
        return session;
      } catch (FaroException taken) {
        assertEquals(Code.ADDRESS_IN_USE, taken.code());
      }
    }
  }

  @Test
  void whatAnOpenFailsWithIsTheStagesProblemToo() {
    SessionConfig wrong =
        Cluster.config(0, Cluster.heldAddresses(1)).set(Setting.RING_BYTES, "12345").build();
    CompletableFuture<Session> opening = Session.openAsync(wrong).toCompletableFuture();
    assertEquals(Code.CONFIG_INVALID, causeOf(opening).code());
    // Thrown by open, it has the stack of the caller.
    FaroException thrown = failure(() -> Session.open(wrong));
    assertTrue(
        List.of(thrown.getStackTrace()).stream()
            .anyMatch(batch -> batch.getClassName().equals(AsynchronousTest.class.getName())));
  }

  @Test
  void aNodeThatReturnsCompletesItsStage() throws Exception {
    List<String> nodes = Cluster.heldAddresses(2);
    CompletableFuture<Session> opening = Session.openAsync(config(1, nodes)).toCompletableFuture();
    try (Session session = Session.open(config(0, nodes))) {
      assertTrue(session.awaitNodeAsync(1, Wait.atMost(LONG)).toCompletableFuture().get());
      opening.get().closeAsync().toCompletableFuture().get();
      awaitGone(session, 1);
      assertFalse(session.awaitNodeAsync(1, Wait.atMost(Duration.ZERO)).toCompletableFuture().get());
      CompletableFuture<Boolean> there = session.awaitNodeAsync(1, Wait.atMost(LONG)).toCompletableFuture();
      CompletableFuture<Boolean> cancelled = session.awaitNodeAsync(1, Wait.atMost(LONG)).toCompletableFuture();
      assertFalse(there.isDone());
      cancelled.cancel(false);
      try (Session again = Session.open(config(1, nodes))) {
        assertTrue(there.get());
        assertTrue(again.hasNode(0));
      }
    }
  }

  @Test
  void closingCompletesAStage() throws Exception {
    Session session = Session.open(config(0, Cluster.heldAddresses(1)));
    session.closeAsync().toCompletableFuture().get();
    session.closeAsync().toCompletableFuture().get(); // closing twice is fine
    failsBy(Code.SESSION_CLOSED, session::beginQuery);
  }

  @Test
  void aQueryEndsWithoutAThreadThatWaits() throws Exception {
    try (Cluster cluster = new Cluster("shm", 2, 2)) {
      QueryId query = cluster.beginQuery();
      CompletableFuture<Void> first = cluster.worker(0).endQueryAsync(query).toCompletableFuture();
      CompletableFuture<Void> second = cluster.worker(2).endQueryAsync(query).toCompletableFuture();
      assertFalse(first.isDone());
      FaroException busy = failsBy(Code.WRONG_STATE, () -> cluster.worker(0).openShuffle(new ShuffleSpec(query, 1, 8)));
      assertEquals(
          "worker 0 ends query " + query + ": wait for the stage of endQueryAsync() first", busy.getMessage());
      assertEquals(Outcome.WOULD_WAIT, cluster.worker(1).endQuery(query, Wait.NONE));
      assertEquals(Outcome.WOULD_WAIT, cluster.worker(1).endQuery(query, Wait.NONE));
      cluster.worker(3).endQuery(query);
      first.get();
      second.get();
      while (cluster.worker(1).endQuery(query, Wait.NONE) != Outcome.DONE) {
        cluster.worker(1).whenReady(() -> false).toCompletableFuture().get();
      }
      cluster.worker(0).waitUntil(() -> true); // it can be used again
    }
  }

  @Test
  void whatAConditionThrowsIsToldAlsoToAThreadThatWasInterrupted() throws Exception {
    try (Cluster cluster = new Cluster("shm", 1, 1)) {
      Worker worker = cluster.worker(0);
      Thread.currentThread().interrupt();
      BooleanSupplier condition = () -> {
        throw new IllegalStateException("mine");
      };
      assertThrows(IllegalStateException.class, () -> worker.waitUntil(condition));
      assertEquals(Outcome.DONE, worker.waitUntil(() -> true));
      assertTrue(Thread.interrupted(), "the interrupt is for the next wait that has to wait");
      assertEquals(Outcome.DONE, worker.waitUntil(() -> true));
    }
  }

  @Test
  void aPartThatFailsEndsWithoutAThreadThatWaits() throws Exception {
    try (Cluster cluster = new Cluster("shm", 1, 2)) {
      QueryId query = cluster.beginQuery();
      CompletableFuture<Void> well = cluster.worker(0).endQueryAsync(query).toCompletableFuture();
      FaroException why =
          cluster.worker(1).endQueryAsync(query, new IllegalStateException("mine")).toCompletableFuture().get();
      assertTrue(why.getMessage().contains("mine"), why.getMessage());
      assertEquals(Code.QUERY_FAILED, causeOf(well).code());
      assertSame(why.code(), causeOf(well).code());
    }
  }

  @Test
  void theEndOfASessionEndsWhatIsUnderWay() throws Exception {
    Cluster cluster = new Cluster("shm", 1, 2);
    QueryId query = cluster.beginQuery();
    CompletableFuture<Void> ending = cluster.worker(0).endQueryAsync(query).toCompletableFuture();
    cluster.close();
    FaroException closed = causeOf(ending);
    assertEquals(Category.SESSION, closed.category(), closed::toString);
  }
}
