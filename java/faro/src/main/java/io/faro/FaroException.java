package io.faro;

/** Every failure of Faro. {@link #code} tells what went wrong, {@link #category} how to react. */
public final class FaroException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final Code code;

  FaroException(Code code, String message) {
    super(message);
    this.code = code;
  }

  FaroException(Code code, String message, Throwable cause) {
    super(message, cause);
    this.code = code;
  }

  /** The exception for the negative code that a native method has just returned to this thread. */
  static FaroException of(long negative) {
    return new FaroException(Code.of((int) -negative), NativeLibrary.lastErrorText());
  }

  /** What went wrong. */
  public Code code() {
    return code;
  }

  /** The largest thing that is broken. */
  public Category category() {
    return code.category();
  }

  /** {@code PEER_LOST: node 2 (10.0.0.2:7000) …} */
  @Override
  public String toString() {
    return getClass().getName() + ": " + code + ": " + getMessage();
  }
}
