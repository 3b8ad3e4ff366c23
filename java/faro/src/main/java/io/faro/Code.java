package io.faro;

/**
 * What went wrong. The same numbers and names as in C++ ({@code faro/codes.def}); a test compares
 * the two lists.
 */
public enum Code {
  /** An argument is outside what the call accepts. */
  INVALID_ARGUMENT(1, Category.OPERATION),
  /** The deadline passed before the operation was done. */
  DEADLINE_EXCEEDED(2, Category.OPERATION),
  /** The object was closed. */
  CLOSED(3, Category.OPERATION),
  /** A row is larger than {@code row.limit_bytes}. */
  ROW_TOO_LARGE(4, Category.OPERATION),
  /** The call is not allowed in this state, or on this thread. */
  WRONG_STATE(5, Category.OPERATION),
  /** The worker would have to wait while it holds frames in place. */
  HOLDING(6, Category.OPERATION),
  /** Another thread has cancelled the call, or interrupted the thread that waits in it. */
  CANCELLED(7, Category.OPERATION),
  /** The query was cancelled by a participant. */
  QUERY_CANCELLED(20, Category.QUERY),
  /** The query failed on a participant. */
  QUERY_FAILED(21, Category.QUERY),
  /** Overflow memory and file are full. */
  OVERFLOW_EXHAUSTED(22, Category.QUERY),
  /** A worker did not open a shuffle, in time or at all, that others send to or wait for. */
  QUERY_UNOPENED(23, Category.QUERY),
  /** The query has already ended. */
  QUERY_ENDED(24, Category.QUERY),
  /** The call goes beyond a bound: of open shuffles, queries, or the copies of frames. */
  LIMIT_EXCEEDED(25, Category.OPERATION),
  /** Workers opened a stage with other {@code rowBytes}, senders or receivers. */
  STAGE_MISMATCH(26, Category.QUERY),
  /** A peer died, was closed or stopped answering. */
  PEER_LOST(40, Category.PEER),
  /** A peer sent something that the wire format forbids. */
  PROTOCOL_ERROR(41, Category.PEER),
  /** The session was closed. */
  SESSION_CLOSED(60, Category.SESSION),
  /** The cluster could not be connected before the deadline. */
  CONNECT_FAILED(61, Category.SESSION),
  /** Nodes disagree about version or configuration. */
  CONFIGURATION_MISMATCH(62, Category.SESSION),
  /** Nodes do not share one secret. */
  AUTHENTICATION_FAILED(63, Category.SESSION),
  /** A setting is unknown, malformed or out of range. */
  CONFIG_INVALID(80, Category.PROCESS),
  /** Memory, /dev/shm or another limit of the machine is too small. */
  RESOURCE_LIMIT(81, Category.PROCESS),
  /** The address to listen on is taken. */
  ADDRESS_IN_USE(82, Category.PROCESS),
  /** A forced transport cannot be used here. */
  TRANSPORT_UNAVAILABLE(83, Category.PROCESS),
  /** A system call failed. */
  SYSTEM_ERROR(84, Category.PROCESS),
  /** An invariant of Faro itself is broken. */
  INTERNAL_ERROR(85, Category.PROCESS);

  private final int number;
  private final Category category;

  Code(int number, Category category) {
    this.number = number;
    this.category = category;
  }

  /** The number that stands for it in C++ and never changes meaning. */
  public int number() {
    return number;
  }

  /** The largest thing that is broken. */
  public Category category() {
    return category;
  }

  static Code of(int number) {
    for (Code code : values()) {
      if (code.number == number) {
        return code;
      }
    }
    return INTERNAL_ERROR;
  }
}
