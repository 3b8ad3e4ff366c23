package io.faro;

/** What an operation of the data path answers. All are normal results; failures are thrown. */
public enum Outcome {
  /** It happened. */
  DONE(0),
  /** Nothing now: try again later, or use the waiting form. Only {@code try…} answers this, no call that waits. */
  WOULD_WAIT(1),
  /**
   * It would have to wait, but the worker holds frames in place: release or detach them first, or
   * two workers could wait for each other's rings forever.
   */
  HOLDING(2),
  /** Every receiver has stopped: send no more. {@code finish} still has to be called. */
  STOPPED(3),
  /** Every sender has finished and all rows were handed out. */
  END_OF_STREAM(4),
  /** The time limit passed first, at once if it is zero; nothing was changed. */
  DEADLINE(5);

  private static final Outcome[] BY_NUMBER = new Outcome[values().length];

  static {
    for (Outcome outcome : values()) {
      BY_NUMBER[outcome.number] = outcome;
    }
  }

  private final int number; // of faro/outcome.h; a test compares the two

  Outcome(int number) {
    this.number = number;
  }

  /** What a native method answers for it. */
  int number() {
    return number;
  }

  /** Of what a native method answered. Throws what the negative codes mean. */
  static Outcome of(int result) {
    if (result < 0) {
      throw FaroException.of(result);
    }
    return BY_NUMBER[result];
  }
}
