package io.faro;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.IntSupplier;

/**
 * The pending futures of a session, at most one per worker. Each completes when its worker should
 * try again. The session's readiness thread completes them: a native thread that starts when the
 * first worker is armed, and sleeps on the doorbells of all armed workers at once.
 *
 * <p>Threads: any.
 */
final class ReadyWatch {
  private final AtomicReferenceArray<CompletableFuture<Void>> pending; // by local index

  ReadyWatch(int workerCount) {
    pending = new AtomicReferenceArray<>(workerCount);
  }

  /**
   * A stage that completes when the worker should try again. {@code arm} arms the doorbell; if it
   * returns WOULD_WAIT, the readiness thread calls {@link #complete} later. After DONE the stage is
   * already complete.
   *
   * @throws FaroException {@link Code#HOLDING} if {@code arm} returns HOLDING
   */
  CompletionStage<Void> whenReady(int worker, IntSupplier arm) {
    CompletableFuture<Void> ready = expect(worker);
    Outcome outcome = Outcome.of(arm.getAsInt());
    if (outcome == Outcome.HOLDING) {
      throw new FaroException(
          Code.HOLDING, "the worker holds frames: release or detach them first");
    }
    if (outcome == Outcome.DONE) {
      complete(worker);
    }
    return ready;
  }

  /**
   * The worker's pending future. Call this before arming the doorbell, because the readiness thread
   * may complete the future as soon as the doorbell is armed. If the doorbell is not armed after
   * all, call {@link #complete}.
   */
  CompletableFuture<Void> expect(int worker) {
    return pending.updateAndGet(
        worker, before -> before == null ? new CompletableFuture<>() : before);
  }

  /**
   * Completes the worker's pending future, if there is one. Also called by the readiness thread
   * (jni/callbacks.cc).
   */
  void complete(int worker) {
    CompletableFuture<Void> stage = pending.getAndSet(worker, null);
    if (stage != null) {
      stage.complete(null);
    }
  }
}
