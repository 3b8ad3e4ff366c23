package io.faro;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.IntSupplier;
import java.util.function.ToIntFunction;

/**
 * The stages that complete when workers of a session should look again, and the thread that completes
 * them: it sleeps on the doorbells of all these workers at once, and starts with the first stage.
 *
 * <p>Threads: any.
 */
final class ReadyWatch {
  private final String name;
  private final ToIntFunction<int[]> awaitReady; // fills in local indices; 0: the session was closed
  private final AtomicReferenceArray<CompletableFuture<Void>> pending; // by local index
  private boolean started; // guarded by this

  ReadyWatch(int node, int workerCount, ToIntFunction<int[]> awaitReady) {
    name = "faro-ready-" + node;
    this.awaitReady = awaitReady;
    pending = new AtomicReferenceArray<>(workerCount);
  }

  /** {@code arm} answers DONE, HOLDING, or WOULD_WAIT: then awaitReady will answer the worker. */
  CompletionStage<Void> whenReady(int worker, IntSupplier arm) {
    CompletableFuture<Void> ready = expect(worker);
    Outcome outcome = Outcome.of(arm.getAsInt());
    if (outcome == Outcome.HOLDING) {
      throw new FaroException(Code.HOLDING, "the worker holds frames: release or detach them first");
    }
    if (outcome == Outcome.DONE) {
      complete(worker);
    } else {
      start();
    }
    return ready;
  }

  /**
   * The stage that completes when the worker should look again. To be asked for before its doorbell is armed: from
   * then on the thread may look for it. Once it is armed, {@link #start} must follow, and else {@link #complete}.
   */
  CompletableFuture<Void> expect(int worker) {
    return pending.updateAndGet(worker, before -> before == null ? new CompletableFuture<>() : before);
  }

  /** Makes sure that somebody listens to the doorbells. */
  synchronized void start() {
    if (!started) {
      started = true;
      Thread thread = new Thread(this::run, name);
      thread.setDaemon(true);
      thread.start();
    }
  }

  private void run() {
    int[] ready = new int[pending.length()];
    for (int count; (count = awaitReady.applyAsInt(ready)) > 0; ) {
      for (int i = 0; i < count; i++) {
        complete(ready[i]);
      }
    }
    for (int worker = 0; worker < ready.length; worker++) {
      complete(worker);
    }
  }

  /** The worker should look now. */
  void complete(int worker) {
    CompletableFuture<Void> stage = pending.getAndSet(worker, null);
    if (stage != null) {
      stage.complete(null);
    }
  }
}
