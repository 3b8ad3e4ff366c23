package io.faro;

/** The largest thing that is broken; tells the caller how to react. */
public enum Category {
  /** The call was refused; everything else continues. */
  OPERATION,
  /** The query has ended on every participant; the session and other queries continue. */
  QUERY,
  /** A peer was lost; queries that need it have failed, others continue. */
  PEER,
  /** The session can only be closed. */
  SESSION,
  /** This process cannot use Faro as asked: configuration, limits of the machine. */
  PROCESS
}
