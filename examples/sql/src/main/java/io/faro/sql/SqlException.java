package io.faro.sql;

/** A query that cannot be planned; the message is for whoever wrote it. */
public final class SqlException extends RuntimeException {
  private static final long serialVersionUID = 1;

  public SqlException(String message, Throwable cause) {
    super(message, cause);
  }
}
