package io.faro;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.IntSupplier;

/**
 * The stages that complete when workers of a session should look again. The session's readiness thread completes them: it
 * is native, sleeps on the doorbells of all these workers at once, and starts with the first one that is armed.
 *
 * <p>Threads: any.
 */
final class ReadyWatch {
  private final AtomicReferenceArray<CompletableFuture<Void>> pending; // by local index

  ReadyWatch(int workerCount) {
    pending = new AtomicReferenceArray<>(workerCount);
  }

  /** {@code arm} answers DONE, HOLDING, or WOULD_WAIT: then {@link #complete} will be called for the worker. */
  CompletionStage<Void> whenReady(int worker, IntSupplier arm) {
    CompletableFuture<Void> ready = expect(worker);
    Outcome outcome = Outcome.of(arm.getAsInt());
    if (outcome == Outcome.HOLDING) {
      throw new FaroException(Code.HOLDING, "the worker holds frames: release or detach them first");
    }
    if (outcome == Outcome.DONE) {
      complete(worker);
    }
    return ready;
  }

  /**
   * The stage that completes when the worker should look again. To be asked for before its doorbell is armed: from
   * then on the thread may look for it. If it is not armed then, {@link #complete} must follow.
   */
  CompletableFuture<Void> expect(int worker) {
    return pending.updateAndGet(worker, before -> before == null ? new CompletableFuture<>() : before);
  }

  /** The worker should look now. Called by the readiness thread, too (jni/callbacks.cc). */
  void complete(int worker) {
    CompletableFuture<Void> stage = pending.getAndSet(worker, null);
    if (stage != null) {
      stage.complete(null);
    }
  }
}
