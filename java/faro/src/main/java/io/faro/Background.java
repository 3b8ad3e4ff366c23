package io.faro;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.function.Consumer;

/**
 * Runs a native call that waits in a separate thread, so that its caller need not wait for the
 * result, can be interrupted while it waits, or, if it is a virtual thread, does not hold its
 * carrier.
 *
 * <p>Threads: any.
 *
 * @param <T> what it answers
 */
final class Background<T> {
  /** The call. */
  interface Call<T> {
    /**
     * @param cancellation ends it
     * @throws FaroException {@link Code#CANCELLED} if it was ended by that
     */
    T run(Cancellation cancellation);
  }

  private final Cancellation cancellation = new Cancellation();
  private final CompletableFuture<T> done = new CompletableFuture<>();

  /** Begins. */
  Background(String threadName, Call<T> call) {
    DaemonThread.start(threadName, () -> run(call));
  }

  private void run(Call<T> call) {
    try (cancellation) {
      done.complete(call.run(cancellation));
    } catch (RuntimeException | Error problem) {
      done.completeExceptionally(problem);
    }
  }

  /**
   * The result as a stage. Its {@link CompletableFuture#cancel} ends the call, whose result is then
   * discarded.
   */
  CompletableFuture<T> stage(Consumer<T> discard) {
    CompletableFuture<T> stage = new CompletableFuture<>();
    done.whenComplete(
        (value, problem) -> {
          if (problem != null) {
            stage.completeExceptionally(problem);
          } else if (!stage.complete(value)) {
            discard.accept(value);
          }
        });
    stage.whenComplete(
        (value, problem) -> {
          if (stage.isCancelled()) {
            cancellation.cancel();
          }
        });
    return stage;
  }

  /**
   * Waits for the result.
   *
   * @throws InterruptedException if the thread is interrupted; the call has then ended without
   *     doing anything. If the call had just completed, its result is returned and the thread stays
   *     interrupted.
   */
  T await() throws InterruptedException {
    try {
      return done.get();
    } catch (ExecutionException failed) {
      throw here(failed.getCause());
    } catch (InterruptedException interrupted) {
      cancellation.cancel();
      try {
        T value = done.join();
        Thread.currentThread().interrupt();
        return value;
      } catch (CompletionException failed) {
        if (failed.getCause() instanceof FaroException problem
            && problem.code() == Code.CANCELLED) {
          throw interrupted;
        }
        Thread.currentThread().interrupt();
        throw here(failed.getCause());
      }
    }
  }

  /** Waits for the result, even if the thread is interrupted. */
  T awaitUninterruptibly() {
    try {
      return done.join();
    } catch (CompletionException failed) {
      throw here(failed.getCause());
    }
  }

  // Thrown with the stack of the caller: that of the other thread helps nobody.
  private static RuntimeException here(Throwable problem) {
    problem.fillInStackTrace();
    if (problem instanceof Error error) {
      throw error;
    }
    return (RuntimeException) problem; // `run` throws no others
  }
}
