package io.faro;

import java.time.Duration;

/** How long a call waits, in nanoseconds as native code takes it. */
final class TimeLimit {
  /** Waits as long as it takes. */
  static final long NONE = Long.MAX_VALUE;

  private static final Duration LONGEST = Duration.ofNanos(NONE);

  private TimeLimit() {}

  /**
   * Zero: the call tries once. What is longer than 292 years is {@link #NONE}.
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} if it is negative
   */
  static long nanos(Duration timeout) {
    if (timeout.isNegative()) {
      throw new FaroException(Code.INVALID_ARGUMENT, "a time limit of " + timeout + " is negative");
    }
    return timeout.compareTo(LONGEST) >= 0 ? NONE : timeout.toNanos();
  }
}
