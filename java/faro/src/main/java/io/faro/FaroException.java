package io.faro;

import java.util.Optional;
import java.util.OptionalInt;

/**
 * Every failure of Faro. {@link #code} says what went wrong, {@link #category} how to react, and
 * {@link #node}, {@link #query} and {@link #stage} what it concerns, if that is known. Each call
 * throws its own failure, and nothing is kept of it: the two sides of a shuffle share none.
 */
public final class FaroException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private static final long[] NOWHERE = {-1, -1, 0, 0, 0};

  private final Code code;
  // Node and stage, -1 if there is none; counter, 0 if there is no query, incarnation and issuer.
  private final long[] place;

  FaroException(Code code, String message) {
    this(code, message, NOWHERE);
  }

  private FaroException(Code code, String message, long[] place) {
    super(message);
    this.code = code;
    this.place = place;
  }

  FaroException(Code code, String message, Throwable cause) {
    super(message, cause);
    this.code = code;
    place = NOWHERE;
  }

  /** The exception for the negative code that a native method has just returned to this thread. */
  static FaroException of(long negative) {
    long[] place = new long[NOWHERE.length];
    NativeLibrary.lastErrorPlace(place);
    return new FaroException(Code.of((int) -negative), NativeLibrary.lastErrorText(), place);
  }

  /** What a native method has answered; throws the exception if that is a negative code. */
  static long checked(long answer) {
    if (answer < 0) {
      throw of(answer);
    }
    return answer;
  }

  /** What went wrong. */
  public Code code() {
    return code;
  }

  /** The largest thing that is broken. */
  public Category category() {
    return code.category();
  }

  /** The node that was lost, or on which the query failed first. */
  public OptionalInt node() {
    return place[0] < 0 ? OptionalInt.empty() : OptionalInt.of((int) place[0]);
  }

  /** The query that has failed, or that the call was about. */
  public Optional<QueryId> query() {
    return place[2] == 0
        ? Optional.empty()
        : Optional.of(new QueryId(place[2], place[3], (int) place[4]));
  }

  /** The stage in which the query has failed, or that the call was about. */
  public OptionalInt stage() {
    return place[1] < 0 ? OptionalInt.empty() : OptionalInt.of((int) place[1]);
  }

  /** {@code PEER_LOST: node 2 (10.0.0.2:7000) …} */
  @Override
  public String toString() {
    return getClass().getName() + ": " + code + ": " + getMessage();
  }
}
