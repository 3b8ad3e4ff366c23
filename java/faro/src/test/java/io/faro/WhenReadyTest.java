package io.faro;

import static io.faro.Checks.failsBy;
import static io.faro.Checks.received;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Engines that are driven by events: no thread waits for rows. */
@Timeout(20)
class WhenReadyTest {
  private static final int LONG_MS = 10_000; // a doorbell that is lost shows: its stage completes only after so long

  private static void sleepLong(SessionConfig.Builder config) {
    config.set(Setting.WAIT_SLEEP_MS, LONG_MS);
  }

  /** One worker of the engine: sends its rows, and counts what arrives. */
  private static final class Task {
    private final Worker worker;
    private final Shuffle shuffle;
    private final LongSender sender;
    private final Batch batch;
    private final int rows;
    private int sent;
    private boolean finished;
    private long received;
    final CompletableFuture<Long> done = new CompletableFuture<>();

    Task(Worker worker, QueryId query, int rows) {
      this.worker = worker;
      this.rows = rows;
      shuffle = worker.openShuffle(new ShuffleSpec(query, 1, 8));
      sender = shuffle.sender().longs();
      batch = shuffle.receiver().newBatch();
    }

    void run(ExecutorService executor) {
      try {
        CompletionStage<Void> ready = worker.whenReady(this::turn);
        if (done.isDone()) {
          shuffle.close();
        } else {
          ready.thenRunAsync(() -> run(executor), executor);
        }
      } catch (RuntimeException | Error problem) {
        done.completeExceptionally(problem);
      }
    }

    // Everything that can be done now; whether that was anything.
    private boolean turn() {
      boolean progress = false;
      for (; sent < rows && sender.send(sent % shuffle.sender().receiverCount(), sent, Wait.NONE) == Outcome.DONE; sent++) {
        progress = true;
      }
      if (sent == rows && !finished && shuffle.sender().finish(Wait.NONE) == Outcome.DONE) {
        finished = true;
        progress = true;
      }
      for (Outcome outcome; (outcome = shuffle.receiver().receive(batch, Wait.NONE)) != Outcome.WOULD_WAIT; progress = true) {
        if (outcome == Outcome.END_OF_STREAM) {
          return finished && done.complete(received) || progress;
        }
        received += batch.rowCount();
        batch.release();
      }
      return progress;
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void oneThreadRunsAllWorkers(String transport) throws Exception {
    ExecutorService executor = Executors.newSingleThreadExecutor();
    try (Cluster cluster =
        new Cluster(2, 3, config -> config.set(Setting.WAIT_SLEEP_MS, LONG_MS).set(Setting.TRANSPORT, transport))) {
      QueryId query = cluster.beginQuery();
      List<Task> tasks = new ArrayList<>();
      executor
          .submit(
              () -> {
                for (int i = 0; i < cluster.workerCount(); i++) {
                  tasks.add(new Task(cluster.worker(i), query, 60_000));
                }
                tasks.forEach(task -> task.run(executor));
              })
          .get();
      for (Task task : tasks) {
        assertEquals(60_000, task.done.get());
      }
    } finally {
      executor.shutdownNow();
      assertTrue(executor.awaitTermination(10, TimeUnit.SECONDS));
    }
  }

  @Test
  void wakeCompletesTheStage() throws Exception {
    try (Cluster cluster = new Cluster(1, 2, WhenReadyTest::sleepLong)) {
      CompletionStage<Void> first = cluster.worker(0).whenReady(() -> false);
      CompletionStage<Void> second = cluster.worker(1).whenReady(() -> false);
      assertFalse(first.toCompletableFuture().isDone());
      cluster.worker(1).wake();
      second.toCompletableFuture().get();
      assertFalse(first.toCompletableFuture().isDone());
      cluster.worker(0).wake();
      first.toCompletableFuture().get();
    }
  }

  @Test
  void progressCompletesItAtOnce() {
    try (Cluster cluster = new Cluster(1, 1, WhenReadyTest::sleepLong)) {
      assertTrue(cluster.worker(0).whenReady(() -> true).toCompletableFuture().isDone());
    }
  }

  @Test
  void itCompletesAfterTheLongestSleepInAnyCase() throws Exception {
    try (Cluster cluster = new Cluster(1, 1, config -> config.set(Setting.WAIT_SLEEP_MS, 20))) {
      cluster.worker(0).whenReady(() -> false).toCompletableFuture().get();
    }
  }

  @Test
  void whatProgressThrowsIsThrown() {
    try (Cluster cluster = new Cluster(1, 1, WhenReadyTest::sleepLong)) {
      BooleanSupplier progress = () -> {
        throw new IllegalStateException("mine");
      };
      assertThrows(IllegalStateException.class, () -> cluster.worker(0).whenReady(progress));
    }
  }

  @Test
  void closingTheSessionCompletesTheStage() throws Exception {
    Cluster cluster = new Cluster(1, 1, WhenReadyTest::sleepLong);
    Worker worker = cluster.worker(0);
    CompletionStage<Void> ready = worker.whenReady(() -> false);
    cluster.close();
    ready.toCompletableFuture().get();
    failsBy(Code.SESSION_CLOSED, () -> worker.whenReady(() -> false));
  }

  @Test
  void aWorkerThatHoldsFramesIsRefused() {
    try (Cluster cluster = new Cluster(1, 1, WhenReadyTest::sleepLong);
        Shuffle shuffle = cluster.openShuffle(8)) {
      Worker worker = cluster.worker(0);
      shuffle.sender().longs().send(0, 1, Wait.NONE);
      shuffle.sender().flush();
      received(shuffle);
      failsBy(Code.HOLDING, () -> worker.whenReady(() -> false));
    }
  }
}
