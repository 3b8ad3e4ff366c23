package io.faro;

import java.util.Objects;

import static java.nio.charset.StandardCharsets.UTF_8;

/**
 * Why a worker's part in a query has failed, as every participant is told.
 *
 * @param code its number; 0: it has not failed
 * @param text the text after the worker's number, as UTF-8
 */
record PartFailure(int code, byte[] text) {
  static final PartFailure NONE = new PartFailure(0, new byte[0]);

  static PartFailure of(Throwable failure) {
    Objects.requireNonNull(failure, "failure");
    if (failure instanceof FaroException known && known.category() == Category.QUERY) {
      return new PartFailure(
          known.code().number(), String.valueOf(known.getMessage()).getBytes(UTF_8));
    }
    String text = failure.getClass().getName() + ": " + failure.getMessage();
    return new PartFailure(Code.QUERY_FAILED.number(), text.getBytes(UTF_8));
  }
}
