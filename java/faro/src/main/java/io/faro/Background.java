package io.faro;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.function.Consumer;

/**
 * A native call that waits, in a thread of its own: so that whoever wants its result need not wait for it, can be
 * interrupted while waiting, or holds no carrier meanwhile, being a virtual thread.
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
    Thread thread = new Thread(() -> run(call), threadName);
    thread.setDaemon(true);
    thread.start();
  }

  private void run(Call<T> call) {
    try (cancellation) {
      done.complete(call.run(cancellation));
    } catch (RuntimeException | Error problem) {
      done.completeExceptionally(problem);
    }
  }

  /** The result as a stage; its {@link CompletableFuture#cancel} ends the call, and what it answers is discarded. */
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
   * @throws InterruptedException if the thread is interrupted; the call has ended then, and done nothing. If it was done
   *     just then its result is returned, and the thread stays interrupted.
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
        if (failed.getCause() instanceof FaroException problem && problem.code() == Code.CANCELLED) {
          throw interrupted;
        }
        Thread.currentThread().interrupt();
        throw here(failed.getCause());
      }
    }
  }

  /** Waits for the result, whatever happens to the thread. */
  T awaitUninterruptibly() {
    try {
      return done.join();
    } catch (CompletionException failed) {
      throw here(failed.getCause());
    }
  }

  // With the stack of the caller: that of the other thread tells nobody anything.
  private static RuntimeException here(Throwable problem) {
    problem.fillInStackTrace();
    if (problem instanceof Error error) {
      throw error;
    }
    return (RuntimeException) problem; // `run` knows no others
  }
}
