package io.faro;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * Which thread owns a worker, a poller or a row buffer, and how long its claims are valid: a claim
 * belongs to an epoch, and each native call begins a new epoch.
 *
 * <p>Threads: one at a time. The first thread that enters owns it until {@link #releaseOwnership}
 * or its end.
 */
final class Owner {
  private static final VarHandle HOLDER;

  static {
    try {
      HOLDER = MethodHandles.lookup().findVarHandle(Owner.class, "holder", Object.class);
    } catch (ReflectiveOperationException problem) {
      throw new ExceptionInInitializerError(problem);
    }
  }

  private final String owned; // what is owned, for messages

  // The owning thread; or a string that says what Faro itself is doing with it; null: nobody.
  // Written with CAS, or by the owner. A plain read that finds the reading thread is correct:
  // nobody else changes it then.
  private Object holder;
  private long epoch; // the owner's

  /** {@code owned}: for instance {@code "worker 3"}. */
  Owner(String owned) {
    this.owned = owned;
  }

  /**
   * Called first by every operation that only the owner may call.
   *
   * @throws FaroException {@link Code#WRONG_STATE} if another thread is the owner
   */
  void enter() {
    if (holder != Thread.currentThread()) {
      own();
    }
  }

  private void own() {
    Thread current = Thread.currentThread();
    for (; ; ) {
      Object before = HOLDER.getAcquire(this);
      if (before instanceof Thread thread && thread.isAlive()) {
        throw new FaroException(
            Code.WRONG_STATE,
            owned + " belongs to " + named(thread) + ", and this is " + named(current)
                + "; that thread has to call releaseOwnership() first");
      }
      if (before instanceof String activity) {
        throw new FaroException(Code.WRONG_STATE, owned + " " + activity);
      }
      if (HOLDER.compareAndSet(this, before, current)) {
        return;
      }
    }
  }

  // With its number: many threads may have one name.
  @SuppressWarnings("deprecation") // threadId() is of Java 19
  private static String named(Thread thread) {
    return "thread \"" + thread.getName() + "\" (id " + thread.getId() + ")";
  }

  /** Releases the calling thread's ownership. The next thread that enters takes it. */
  void releaseOwnership() {
    enter();
    HOLDER.setRelease(this, null);
  }

  /**
   * Moves ownership from the calling thread to Faro until {@link #giveBack}. Calls meanwhile fail
   * with this text.
   */
  void lendTo(String activity) {
    enter();
    HOLDER.setRelease(this, activity);
  }

  /** Ends Faro's ownership. The next thread that enters becomes the owner. */
  void giveBack() {
    HOLDER.setRelease(this, null);
  }

  /**
   * The calling thread becomes the owner in place of the one that sleeps in a native call.
   *
   * @return who that is, for {@link #giveBackTo}
   */
  Object takeOver() {
    Object before = HOLDER.getAcquire(this);
    HOLDER.setRelease(this, Thread.currentThread());
    return before;
  }

  /** Ends what {@link #takeOver} began. */
  void giveBackTo(Object before) {
    HOLDER.setRelease(this, before);
  }

  /**
   * Ends all claims. Called before each native call, and after each call from native code into
   * Java, because frames may close there.
   */
  void nextEpoch() {
    epoch++;
  }

  /** Counts native calls. */
  long epoch() {
    return epoch;
  }
}
