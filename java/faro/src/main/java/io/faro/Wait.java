package io.faro;

import java.time.Duration;
import java.util.Objects;

/**
 * How long a call may wait: the last argument of every call that can wait. Without it the call
 * waits {@link #FOREVER}.
 *
 * <pre>{@code
 * sender.send(receiver, row)              // waits as long as it takes
 * sender.send(receiver, row, Wait.NONE)   // WOULD_WAIT if there is no room now
 * Wait<InterruptedException> moment = Wait.atMost(Duration.ofMillis(5));
 * sender.send(receiver, row, moment)      // DEADLINE if there was none for 5 ms
 * }</pre>
 *
 * A call that waits also ends on cancel, close or the loss of a peer, and at once when its thread
 * is interrupted. A call that does not wait throws no {@link InterruptedException}; the compiler
 * knows that from the type of {@link #NONE}.
 *
 * <p>Threads: any; immutable.
 *
 * @param <X> what the call throws if its thread is interrupted while it waits
 */
public final class Wait<X extends Exception> {
  /** In nanoseconds; stands for as long as it takes. */
  static final long UNLIMITED = Long.MAX_VALUE;

  /** Tries once: {@link Outcome#WOULD_WAIT} if the call would have to wait. Allocates nothing. */
  public static final Wait<RuntimeException> NONE = new Wait<>(0, true);

  /** Waits as long as it takes. Allocates nothing. */
  public static final Wait<InterruptedException> FOREVER = new Wait<>(UNLIMITED, false);

  private static final Duration LONGEST = Duration.ofNanos(UNLIMITED);

  private final long nanos;
  private final boolean isNone;

  private Wait(long nanos, boolean isNone) {
    this.nanos = nanos;
    this.isNone = isNone;
  }

  /**
   * Waits at most this long; then the answer is {@link Outcome#DEADLINE}, at once if it is zero.
   * More than 292 years are {@link #FOREVER}.
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} if it is negative
   */
  public static Wait<InterruptedException> atMost(Duration limit) {
    Objects.requireNonNull(limit, "limit");
    if (limit.isNegative()) {
      throw new FaroException(Code.INVALID_ARGUMENT, "a time limit of " + limit + " is negative");
    }
    return limit.compareTo(LONGEST) >= 0 ? FOREVER : atMost(limit.toNanos());
  }

  /**
   * Waits at most this many nanoseconds; then the answer is {@link Outcome#DEADLINE}, at once if
   * they are zero. {@link Long#MAX_VALUE} of them are {@link #FOREVER}.
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} if they are negative
   */
  public static Wait<InterruptedException> atMost(long nanos) {
    if (nanos < 0) {
      throw new FaroException(
          Code.INVALID_ARGUMENT, "a time limit of " + nanos + " ns is negative");
    }
    return nanos == UNLIMITED ? FOREVER : new Wait<>(nanos, false);
  }

  /** Whether the call tries once, and answers WOULD_WAIT. */
  boolean isNone() {
    return isNone;
  }

  /** Whether a call that has answered this without waiting has to wait now. */
  boolean goesOn(Outcome outcome) {
    return outcome == Outcome.WOULD_WAIT && !isNone;
  }

  /** The value for native code. */
  long nanos() {
    return nanos;
  }

  /** The rest of it, if it began at this time of {@link System#nanoTime}. */
  Wait<X> since(long begin) {
    if (isNone || nanos == UNLIMITED) {
      return this;
    }
    return new Wait<>(Math.max(0, nanos - (System.nanoTime() - begin)), false);
  }

  /**
   * The exception as the caller has declared it. Only calls with a wait other than {@link #NONE}
   * wait, and throw it.
   */
  @SuppressWarnings("unchecked")
  X interrupted(InterruptedException exception) {
    return (X) exception;
  }

  @Override
  public String toString() {
    return isNone ? "none" : nanos == UNLIMITED ? "forever" : "at most " + Duration.ofNanos(nanos);
  }
}
