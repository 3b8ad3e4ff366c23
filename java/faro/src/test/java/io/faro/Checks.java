package io.faro;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.function.Executable;

/** Assertions that many tests use. */
final class Checks {
  private Checks() {}

  static void check(Outcome outcome) {
    assertEquals(Outcome.DONE, outcome);
  }

  static FaroException failure(Executable call) {
    return assertThrows(FaroException.class, call);
  }

  static Code codeOf(Executable call) {
    return failure(call).code();
  }
}
