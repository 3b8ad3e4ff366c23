package io.faro.sql.sockets;

/**
 * A connection has ended in the middle of a query. That is a consequence of something: this is thrown only if nobody
 * has told of what.
 */
public final class CarrierEndedException extends RuntimeException {
  private static final long serialVersionUID = 1;

  CarrierEndedException(String message) {
    super(message);
  }
}
