package io.faro;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.Arrays;

/**
 * The thread that owns a worker or a row buffer, and the claims of that thread: an epoch lasts from one native
 * call to the next one, and while it lasts the cursors of some open frames are Java's.
 *
 * <p>Threads: one at a time. The first thread that enters owns it until {@link #handOver} or its end.
 */
final class Owner {
  private static final VarHandle THREAD;

  static {
    try {
      THREAD = MethodHandles.lookup().findVarHandle(Owner.class, "thread", Thread.class);
    } catch (ReflectiveOperationException problem) {
      throw new ExceptionInInitializerError(problem);
    }
  }

  private final String owned; // what belongs to the thread, for messages

  // Written with CAS. A plain read that finds the reading thread is right: nobody else changes it then.
  private Thread thread;
  private long epoch; // the owner's

  // Open frames whose cursors are Java's in this epoch, and what they belong to.
  private OpenFrame[] lent = {};
  private OpenFrames[] lenders = {};
  private int lentCount;

  /** {@code owned}: as {@code "worker 3"}. */
  Owner(String owned) {
    this.owned = owned;
  }

  /**
   * Called first by everything that only the owner may do.
   *
   * @throws FaroException {@link Code#WRONG_STATE} if another thread is the owner
   */
  void enter() {
    if (thread != Thread.currentThread()) {
      own();
    }
  }

  private void own() {
    Thread current = Thread.currentThread();
    for (; ; ) {
      Thread before = (Thread) THREAD.getAcquire(this);
      if (before != null && before.isAlive()) {
        throw new FaroException(
            Code.WRONG_STATE, owned + " belongs to " + before + "; that one has to handOver() first");
      }
      if (THREAD.compareAndSet(this, before, current)) {
        return;
      }
    }
  }

  /** Lets go of the calling thread's ownership; the next thread that enters takes it. */
  void handOver() {
    enter();
    THREAD.setRelease(this, (Thread) null);
  }

  /**
   * Before each native call, and after what native calls in Java: frames may close then, so their
   * cursors are handed back, and claims end.
   */
  void nextEpoch() {
    epoch++;
    while (lentCount > 0) {
      lentCount--;
      lenders[lentCount].writeBack(lent[lentCount]);
      lenders[lentCount] = null;
    }
  }

  /** Counts native calls. */
  long epoch() {
    return epoch;
  }

  /** The cursor of this frame is Java's until the next epoch. */
  void lend(OpenFrames lender, OpenFrame frame) {
    if (lentCount == lent.length) {
      int more = Math.max(16, 2 * lentCount);
      lent = Arrays.copyOf(lent, more);
      lenders = Arrays.copyOf(lenders, more);
    }
    lent[lentCount] = frame;
    lenders[lentCount++] = lender;
  }
}
