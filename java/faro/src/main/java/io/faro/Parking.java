package io.faro;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * How a worker waits while a virtual thread owns it. A native call that blocked would hold the
 * carrier thread, so no call blocks. Instead the call arms the worker's doorbell and the virtual
 * thread parks, which frees its carrier. The session's readiness thread listens to the doorbell and
 * unparks the virtual thread, which then tries the call again.
 *
 * <p>Threads: the worker's.
 */
final class Parking {
  private static final int WOULD_WAIT = Outcome.WOULD_WAIT.number();

  private final Worker worker;
  private final int localIndex;
  private final ReadyWatch readyWatch;

  Parking(Worker worker, int localIndex, ReadyWatch readyWatch) {
    this.worker = worker;
    this.localIndex = localIndex;
    this.readyWatch = readyWatch;
  }

  /**
   * Repeats the call until its result is not WOULD_WAIT. Returns DEADLINE if the time limit passes
   * first.
   *
   * @param timeout in nanoseconds, above 0
   * @throws InterruptedException if the thread is interrupted before the call has done anything
   */
  int await(Worker.Attempt attempt, long timeout) throws InterruptedException {
    long begin = System.nanoTime();
    for (; ; ) {
      CompletableFuture<Void> ready = readyWatch.expect(localIndex);
      int result = arm(attempt);
      if (result != WOULD_WAIT) {
        return result;
      }
      try {
        if (timeout == Wait.UNLIMITED) {
          ready.get();
        } else {
          ready.get(timeout - (System.nanoTime() - begin), TimeUnit.NANOSECONDS);
        }
      } catch (TimeoutException passed) {
        result = lastAttempt(attempt, ready);
        return result == WOULD_WAIT ? Outcome.DEADLINE.number() : result;
      } catch (InterruptedException interrupted) {
        result = lastAttempt(attempt, ready);
        if (result == WOULD_WAIT) {
          throw interrupted;
        }
        Thread.currentThread().interrupt(); // the next wait ends at once
        return result;
      } catch (ExecutionException impossible) {
        throw new AssertionError(impossible);
      }
    }
  }

  /**
   * Tries the call once. If it returns WOULD_WAIT, the future that the caller got from
   * {@link ReadyWatch#expect} completes when the call should be tried again.
   */
  int arm(Worker.Attempt attempt) {
    boolean armed = false;
    try {
      int result = attempt.call(Worker.ARM);
      armed = result == WOULD_WAIT;
      return result;
    } finally {
      if (!armed) {
        readyWatch.complete(localIndex);
      }
    }
  }

  // The readiness thread still listens to the armed doorbell. The wake-up makes it stop before the
  // call is tried again.
  private int lastAttempt(Worker.Attempt attempt, CompletableFuture<Void> ready) {
    worker.wake();
    ready.join();
    return attempt.call(0);
  }
}
