package io.faro;

import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * How a poller waits and is woken.
 *
 * <p>Wake-ups are coalesced: {@link #wake} makes its native call only if no other one is pending.
 * Every wait resets the flag when it has ended. That loses none, for this reason: both sides change
 * the flag by an atomic exchange. A waker that finds the flag set has come before the exchange of
 * some wait that has not returned yet, so what it did before is visible after that wait has
 * returned. And whoever set the flag makes a native call, which ends that wait or else the next
 * one. A waker that comes later finds the flag reset, and makes the call itself. A wait that ends
 * for another reason resets the flag, too: then the pending native call ends the next wait, which
 * is one look too many.
 *
 * <p>Threads: the poller's; {@link #wake}: any.
 */
final class PollerWait {
  /**
   * Longest native wait: as long as a native wait sleeps by itself (wait.sleep_ms).
   * Thread.interrupt() of JDK 17 looks first whether the thread is in a channel, and then sets its
   * flag: between the two the thread can find no flag and begin a wait, of which the interrupt
   * knows nothing. The next wait finds the flag. Later JDKs set the flag first.
   */
  private static final long LOOK_NANOS = 1_000_000_000L;

  private final NativePoller natives;
  private final String name; // for messages and threads
  private final Interruption interruption;
  private final AtomicBoolean wakePending = new AtomicBoolean();

  PollerWait(NativePoller natives, String name) {
    this.natives = natives;
    this.name = name;
    interruption = new Interruption(name, this::interruptWait, this::clearInterrupt);
  }

  <X extends Exception> Outcome await(Wait<X> wait, WakeFor wakeFor) throws X {
    int reasons = wakeFor.number();
    try {
      if (wait.nanos() == 0 || VirtualThreads.isCurrent()) {
        Outcome outcome = Outcome.of(natives.await(natives.handle, 0, reasons));
        if (outcome != Outcome.WOULD_WAIT || wait.isNone()) {
          return outcome;
        }
        return wait.nanos() == 0 ? Outcome.DEADLINE : awaitApart(wait.nanos(), reasons);
      }
      return Outcome.of(awaitInCalls(wait.nanos(), reasons));
    } catch (InterruptedException interrupted) {
      throw wait.interrupted(interrupted);
    } finally {
      endWait();
    }
  }

  Outcome arm(WakeFor wakeFor) {
    try {
      return Outcome.of(natives.arm(natives.handle, wakeFor.number()));
    } finally {
      endWait();
    }
  }

  private void endWait() {
    // This reads what the wakers have written, which a mere write would not.
    wakePending.getAndSet(false);
  }

  void wake() {
    if (!wakePending.getAndSet(true)) {
      natives.wake(natives.handle);
    }
  }

  // Ends after some time, to look for an interrupt again; see LOOK_NANOS.
  private int awaitInCalls(long nanos, int reasons) throws InterruptedException {
    long begin = nanos == Wait.UNLIMITED ? 0 : System.nanoTime();
    for (long left = nanos; ; ) {
      int result = awaitInCall(Math.min(left, LOOK_NANOS), reasons);
      if (result != Outcome.DEADLINE.number()) {
        return result;
      }
      left = nanos == Wait.UNLIMITED ? nanos : nanos - (System.nanoTime() - begin);
      if (left <= 0) {
        return result;
      }
    }
  }

  private int awaitInCall(long nanos, int reasons) throws InterruptedException {
    // If the call throws, that is told, and the thread stays interrupted.
    int result = Outcome.DONE.number();
    interruption.begin();
    try {
      result = natives.await(natives.handle, nanos, reasons);
    } finally {
      interruption.end(result);
    }
    return result;
  }

  // A virtual thread must not hold its carrier: another thread makes the native call.
  private Outcome awaitApart(long nanos, int reasons) throws InterruptedException {
    Background<Outcome> sleeping =
        new Background<>(
            "faro-" + name, never -> Outcome.of(natives.await(natives.handle, nanos, reasons)));
    try {
      sleeping.stage(outcome -> {}).get();
    } catch (ExecutionException failed) {
      // It is thrown below, as of this thread.
    } catch (InterruptedException interrupted) {
      return interrupt(sleeping, interrupted);
    }
    return sleeping.awaitUninterruptibly();
  }

  private Outcome interrupt(Background<Outcome> sleeping, InterruptedException interrupted)
      throws InterruptedException {
    interruptWait();
    boolean isReported = false;
    try {
      if (sleeping.awaitUninterruptibly() == Outcome.WOULD_WAIT) {
        isReported = true;
        throw interrupted;
      }
    } finally {
      clearInterrupt();
      if (!isReported) {
        Thread.currentThread().interrupt(); // the next wait ends at once
      }
    }
    return sleeping.awaitUninterruptibly();
  }

  private void interruptWait() {
    natives.interrupt(natives.handle);
  }

  private void clearInterrupt() {
    natives.clearInterrupt(natives.handle);
  }
}
