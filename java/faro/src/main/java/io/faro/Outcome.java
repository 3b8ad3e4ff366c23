package io.faro;

/** What an operation of the data path answers. All are normal results; failures are thrown. */
public enum Outcome {
  // In the order of faro/outcome.h.
  /** It happened. */
  DONE,
  /** Nothing now: try again later, or use the waiting form. Only {@code try…} answers this. */
  WOULD_WAIT,
  /**
   * It would have to wait, but the worker holds frames in place: release or detach them first, or
   * two workers could wait for each other's rings for ever.
   */
  HOLDING,
  /** Every receiver has stopped: send no more. {@code finish} still has to be called. */
  STOPPED,
  /** Every sender has finished and all rows were handed out. */
  END_OF_STREAM,
  /** The time limit passed first; nothing was changed. */
  DEADLINE;

  private static final Outcome[] VALUES = values();

  /** Of what a native method answered. Throws what the negative codes mean. */
  static Outcome of(int result) {
    if (result < 0) {
      throw FaroException.of(result);
    }
    return VALUES[result];
  }
}
