package io.faro;

/**
 * What an operation of the data path answers. All are normal results; failures are thrown. Each
 * value says what the caller does next.
 */
public enum Outcome {
  /** It happened. Next: continue. */
  DONE(0),
  /**
   * Nothing happened: there is no room, or there are no rows, now. Only calls with
   * {@link Wait#NONE} answer this. Next: do something else, receive first of all, and try again; if
   * there is nothing else to do, {@link Worker#waitUntil} or {@link Worker#whenReady}.
   */
  WOULD_WAIT(1),
  /**
   * Nothing happened: it would have to wait, but the worker holds batches in place, and two such
   * workers could wait for each other's rings forever. Next: release or detach the batches, then
   * call again.
   */
  HOLDING(2),
  /**
   * Every receiver has stopped; the row was not sent, and nobody needs it. Next: send no more on
   * this shuffle, and {@link ShuffleSender#finish}.
   */
  STOPPED(3),
  /**
   * Every sender has finished and all rows were handed out. Next: close the shuffle; no more rows
   * will come.
   */
  END_OF_STREAM(4),
  /**
   * The limit of {@link Wait#atMost} passed first, at once if it is zero; nothing happened. Next:
   * call again, or give up by {@link Shuffle#cancel}.
   */
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

  /** The number that a native method answers for it. */
  int number() {
    return number;
  }

  /** The outcome for a native method's answer. Throws the exception for a negative code. */
  static Outcome of(int result) {
    return BY_NUMBER[(int) FaroException.checked(result)];
  }

  /**
   * Whether a call with this result has ended before what it waits for, which is to be asked for
   * again.
   */
  static boolean isOpen(int result) {
    return result == WOULD_WAIT.number() || result == DEADLINE.number();
  }
}
