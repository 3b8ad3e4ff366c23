package io.faro;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.IntBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * A virtual thread waits without a native call, so that its carrier runs others. Most tests use threads that are taken
 * for virtual, since the oldest JDK for which Faro is built has none.
 */
@Timeout(20)
class VirtualThreadsTest {
  /** Taken for a virtual thread. */
  private static final class Task<T> extends Thread {
    final CompletableFuture<T> done = new CompletableFuture<>();
    private final Callable<T> body;

    Task(Callable<T> body) {
      super("taken for a virtual thread");
      this.body = body;
      start();
    }

    @Override
    public void run() {
      try {
        done.complete(body.call());
      } catch (Throwable problem) {
        done.completeExceptionally(problem);
      }
    }

    /** Waits until the thread waits for something of Faro's, in Java. */
    void awaitParked() throws InterruptedException {
      while (!isParked()) {
        assertTrue(isAlive());
        if (Thread.interrupted()) {
          throw new InterruptedException("the test's time limit");
        }
        Thread.onSpinWait();
      }
    }

    private boolean isParked() {
      boolean waits = getState() == State.WAITING || getState() == State.TIMED_WAITING;
      for (StackTraceElement batch : getStackTrace()) {
        if (waits && batch.getClassName().equals(Parking.class.getName())) {
          return true;
        }
      }
      return false;
    }
  }

  @BeforeAll
  static void takeTasksForVirtual() {
    VirtualThreads.alsoForTest(Task.class);
  }

  @AfterAll
  static void noMore() {
    VirtualThreads.alsoForTest(null);
  }

  // A doorbell that is lost shows: its thread goes on only after so long.
  private static Cluster cluster(int nodes, int workersPerNode) {
    return new Cluster(nodes, workersPerNode, config -> config.set(Setting.WAIT_SLEEP_MS, 10_000));
  }

  private static Throwable causeOf(CompletableFuture<?> done) {
    return assertThrows(ExecutionException.class, done::get).getCause();
  }

  @Test
  void anExchangeParksAndGoesOnWhenItIsWoken() throws Exception {
    try (Cluster cluster = cluster(1, 1)) {
      Worker worker = cluster.worker(0);
      ShuffleSpec spec = cluster.spec(Long.BYTES);
      AtomicBoolean maySend = new AtomicBoolean();
      AtomicInteger rows = new AtomicInteger();
      Task<Outcome> task =
          new Task<>(
              () -> {
                try (Shuffle shuffle = worker.openShuffle(spec)) {
                  LongSender sender = shuffle.sender().longs();
                  return worker.exchange(
                      shuffle,
                      any -> !maySend.get() || sender.send(0, 7, Wait.NONE) != Outcome.DONE ? Outcome.WOULD_WAIT : Outcome.END_OF_STREAM,
                      batch -> rows.addAndGet(batch.rowCount()));
                }
              });
      task.awaitParked();
      maySend.set(true);
      worker.wake();
      assertEquals(Outcome.END_OF_STREAM, task.done.get());
      assertEquals(1, rows.get());
    }
  }

  @Test
  void takeParksUntilRowsCome() throws Exception {
    try (Cluster cluster = cluster(1, 2)) {
      ShuffleSpec spec = cluster.spec(8);
      Task<Long> taking =
          new Task<>(
              () -> {
                try (Shuffle shuffle = cluster.worker(1).openShuffle(spec);
                    Batch batch = shuffle.receiver().newBatch()) {
                  shuffle.sender().finish();
                  assertEquals(Outcome.DONE, shuffle.receiver().receive(batch));
                  long row = batch.getLong(0);
                  shuffle.receiver().stop();
                  return row;
                }
              });
      taking.awaitParked();
      try (Shuffle shuffle = cluster.worker(0).openShuffle(spec)) {
        shuffle.sender().longs().send(1, 77);
        shuffle.sender().flush();
        assertEquals(77, taking.done.get());
        shuffle.sender().finish();
        shuffle.receiver().stop();
      }
    }
  }

  @Test
  void manyRowsParkUntilThereIsRoomAndGoOn() throws Exception {
    int count = 100_000; // more than the ring has room for
    try (Cluster cluster = cluster(1, 2)) {
      ShuffleSpec spec = cluster.spec(8, 0, 1);
      Task<Integer> sending =
          new Task<>(
              () -> {
                try (Shuffle shuffle = cluster.worker(0).openShuffle(spec)) {
                  ByteBuffer rows = ByteBuffer.allocateDirect(8 * count).order(ByteOrder.nativeOrder());
                  rows.asLongBuffer().put(LongStream.range(0, count).toArray());
                  IntBuffer first = ByteBuffer.allocateDirect(4 * count).order(ByteOrder.nativeOrder()).asIntBuffer();
                  int sent = shuffle.sender().memory().sendRows(rows, 0, count, first);
                  assertEquals(Outcome.DONE, shuffle.sender().finish());
                  return sent;
                }
              });
      sending.awaitParked();
      try (Shuffle shuffle = cluster.worker(1).openShuffle(spec)) {
        long[] next = {0};
        Checks.drainLongs(shuffle, row -> assertEquals(next[0]++, row));
        assertEquals(count, next[0]);
      }
      assertEquals(count, sending.done.get());
    }
  }

  @Test
  void allToAllWithEveryWait() throws Exception {
    int rows = 100_000;
    try (Cluster cluster = cluster(2, 2)) {
      ShuffleSpec spec = cluster.spec(8);
      List<Task<Long>> tasks = new ArrayList<>();
      for (int i = 0; i < cluster.workerCount(); i++) {
        Worker worker = cluster.worker(i);
        tasks.add(
            new Task<>(
                () -> {
                  long received = 0;
                  try (Shuffle shuffle = worker.openShuffle(spec);
                      Batch batch = shuffle.receiver().newBatch()) {
                    LongSender sender = shuffle.sender().longs();
                    for (int row = 0; row < rows; row++) { // all, before it polls any
                      assertEquals(Outcome.DONE, sender.send(row % 4, row));
                    }
                    assertEquals(Outcome.DONE, shuffle.sender().finish());
                    while (shuffle.receiver().receive(batch) == Outcome.DONE) {
                      received += batch.rowCount();
                    }
                  }
                  worker.endQuery(spec.query());
                  return received;
                }));
      }
      for (Task<Long> task : tasks) {
        assertEquals(rows, task.done.get());
      }
    }
  }

  @Test
  void aWorkerSendsToItselfMoreThanItsRingHas() throws Exception {
    try (Cluster cluster = cluster(1, 1)) {
      Task<Outcome> sending =
          new Task<>(
              () -> {
                try (Shuffle shuffle = cluster.openShuffle(8)) {
                  LongSender sender = shuffle.sender().longs();
                  for (int row = 0; row < 100_000; row++) {
                    assertEquals(Outcome.DONE, sender.send(0, row));
                  }
                  shuffle.receiver().stop();
                  return shuffle.sender().finish();
                }
              });
      assertEquals(Outcome.DONE, sending.done.get());
    }
  }

  @Test
  void aTimeLimitEndsAWaitAndTheNextOneWaitsAgain() throws Exception {
    try (Cluster cluster = cluster(1, 1)) {
      Worker worker = cluster.worker(0);
      AtomicInteger calls = new AtomicInteger();
      Task<Outcome> waiting =
          new Task<>(
              () -> {
                assertEquals(Outcome.DEADLINE, worker.waitUntil(() -> false, Wait.atMost(Duration.ofMillis(5))));
                return worker.waitUntil(() -> calls.incrementAndGet() > 10);
              });
      while (waiting.isAlive()) {
        worker.wake();
      }
      assertEquals(Outcome.DONE, waiting.done.get());
    }
  }

  @Test
  void anInterruptEndsAWaitAndTheNextOneWaitsAgain() throws Exception {
    try (Cluster cluster = cluster(1, 1)) {
      Worker worker = cluster.worker(0);
      CountDownLatch interrupted = new CountDownLatch(1);
      Task<Outcome> waiting =
          new Task<>(
              () -> {
                assertThrows(InterruptedException.class, () -> worker.waitUntil(() -> false));
                assertFalse(Thread.currentThread().isInterrupted());
                interrupted.countDown();
                boolean[] woken = {false};
                return worker.waitUntil(
                    () -> {
                      boolean was = woken[0];
                      woken[0] = calledFromParking();
                      return was;
                    });
              });
      waiting.awaitParked();
      waiting.interrupt();
      interrupted.await();
      while (waiting.isAlive()) {
        worker.wake();
      }
      assertEquals(Outcome.DONE, waiting.done.get());
    }
  }

  private static boolean calledFromParking() {
    return StackWalker.getInstance().walk(frames -> frames.anyMatch(f -> f.getClassName().equals(Parking.class.getName())));
  }

  @Test
  void theEndOfAQueryParks() throws Exception {
    try (Cluster cluster = cluster(1, 2)) {
      QueryId query = cluster.beginQuery();
      Task<Outcome> first = new Task<>(() -> cluster.worker(0).endQuery(query, Wait.FOREVER));
      first.awaitParked();
      Task<Outcome> second = new Task<>(() -> cluster.worker(1).endQuery(query, Wait.FOREVER));
      assertEquals(Outcome.DONE, first.done.get());
      assertEquals(Outcome.DONE, second.done.get());
    }
  }

  @Test
  void closingTheSessionEndsIt() throws Exception {
    Cluster cluster = cluster(1, 1);
    Task<Outcome> waiting = new Task<>(() -> cluster.worker(0).waitUntil(() -> false));
    waiting.awaitParked();
    cluster.close();
    assertEquals(Code.SESSION_CLOSED, ((FaroException) causeOf(waiting.done)).code());
  }

  @Test
  void theCancellingOfAQueryEndsIt() throws Exception {
    try (Cluster cluster = cluster(1, 2)) {
      ShuffleSpec spec = cluster.spec(8);
      Task<Outcome> taking =
          new Task<>(
              () -> {
                try (Shuffle shuffle = cluster.worker(0).openShuffle(spec);
                    Batch batch = shuffle.receiver().newBatch()) {
                  return shuffle.receiver().receive(batch);
                }
              });
      taking.awaitParked();
      cluster.session(0).cancelQuery(spec.query(), "not needed");
      assertEquals(Code.QUERY_CANCELLED, ((FaroException) causeOf(taking.done)).code());
    }
  }

  @Test
  void aWorkerThatHoldsFramesDoesNotWait() throws Exception {
    try (Cluster cluster = cluster(1, 1)) {
      Worker worker = cluster.worker(0);
      Task<Outcome> waiting =
          new Task<>(
              () -> {
                try (Shuffle shuffle = cluster.openShuffle(8);
                    Batch batch = shuffle.receiver().newBatch()) {
                  shuffle.sender().longs().send(0, 1);
                  shuffle.sender().finish();
                  assertEquals(Outcome.DONE, shuffle.receiver().receive(batch));
                  return worker.waitUntil(() -> false);
                }
              });
      assertEquals(Outcome.HOLDING, waiting.done.get());
    }
  }

  @Test
  void whatAConditionThrowsIsThrown() {
    try (Cluster cluster = cluster(1, 1)) {
      BooleanSupplier condition = () -> {
        if (calledFromParking()) {
          throw new IllegalStateException("mine");
        }
        return false;
      };
      Task<Outcome> waiting = new Task<>(() -> cluster.worker(0).waitUntil(condition));
      assertEquals("mine", causeOf(waiting.done).getMessage());
    }
  }

  /** More virtual threads wait than there are carriers: another one can still run, and ends their waits. */
  @Test
  void moreOfThemCanWaitThanThereAreCarriers() throws Exception {
    Method startVirtualThread;
    try {
      startVirtualThread = Thread.class.getMethod("startVirtualThread", Runnable.class);
    } catch (NoSuchMethodException before21) {
      assumeTrue(false, "this JDK has no virtual threads; ./run test runs the tests with the newest one there is");
      return;
    }
    int waiters = 4 * Runtime.getRuntime().availableProcessors();
    try (Cluster cluster = cluster(1, waiters + 1)) {
      int[] receivers = IntStream.rangeClosed(1, waiters).toArray();
      ShuffleSpec spec = new ShuffleSpec(cluster.beginQuery(), 1, 8, new int[] {0}, receivers);
      CountDownLatch opened = new CountDownLatch(waiters);
      List<FutureTask<Long>> waiting = new ArrayList<>();
      for (int i = 0; i < waiters; i++) {
        Worker worker = cluster.worker(i + 1);
        FutureTask<Long> row = new FutureTask<>(() -> {
          try (Shuffle shuffle = worker.openShuffle(spec);
              Batch batch = shuffle.receiver().newBatch()) {
            opened.countDown();
            shuffle.receiver().receive(batch);
            long received = batch.getLong(0);
            batch.release();
            assertEquals(Outcome.END_OF_STREAM, shuffle.receiver().receive(batch));
            return received;
          }
        });
        waiting.add(row);
        startVirtualThread.invoke(null, row);
      }
      FutureTask<Outcome> sending = new FutureTask<>(() -> {
        try (Shuffle shuffle = cluster.worker(0).openShuffle(spec)) {
          opened.await();
          for (int i = 0; i < waiters; i++) {
            shuffle.sender().longs().send(i, i);
          }
          return shuffle.sender().finish();
        }
      });
      startVirtualThread.invoke(null, sending);
      assertEquals(Outcome.DONE, sending.get(20, TimeUnit.SECONDS));
      for (int i = 0; i < waiters; i++) {
        assertEquals(i, waiting.get(i).get(20, TimeUnit.SECONDS));
      }
    }
  }
}
