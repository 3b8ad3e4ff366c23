package io.faro;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * The waits of one worker while a virtual thread owns it: no native call waits. The call arms the worker's doorbell
 * instead, the thread that waits for all workers of the session listens to it, and the virtual thread parks until
 * there is something to look at. So its carrier runs others meanwhile.
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
   * Calls until the answer is something else than WOULD_WAIT, or the time limit has passed: DEADLINE.
   *
   * @param timeout in nanoseconds, above 0
   * @throws InterruptedException if the thread is interrupted before anything was done
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
   * Tries once. If that answers WOULD_WAIT, what {@link ReadyWatch#expect} has answered before completes when it should
   * be tried again.
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

  // The doorbell is armed, and somebody listens to it: not any more when this tries.
  private int lastAttempt(Worker.Attempt attempt, CompletableFuture<Void> ready) {
    worker.wake();
    ready.join();
    return attempt.call(0);
  }
}
