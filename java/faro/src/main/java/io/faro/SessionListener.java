package io.faro;

/**
 * What a session tells its engine without being asked; by default nothing is done about it.
 *
 * <p>Threads: one of Faro for each session that somebody listens to, one call after the other, in the order in which
 * it happened. A call that blocks holds up those after it, and nothing else; what it throws goes to the thread's
 * uncaught exception handler. A call may come while {@link Session#close} is under way, but nothing is told of what
 * closing the own session ends. A session to which only its listener refers is not forgotten: then close it.
 */
public interface SessionListener {
  /**
   * A node is lost: it died, hangs or broke the protocol. Queries that contain it have failed.
   *
   * @param cause what they were told, which names the node; {@link Code#PEER_LOST} or {@link Code#PROTOCOL_ERROR}
   */
  default void nodeLost(int node, FaroException cause) {}

  /** A node has closed its session. What needed it still has failed, as by a loss. */
  default void nodeLeft(int node) {}

  /**
   * A node that was lost, has left or was missing is there: queries may contain it, as after {@link Session#awaitNode}.
   */
  default void nodeReturned(int node) {}

  /**
   * A query that this node uses, has declared or has begun has failed here. Once per query; it still has to be ended.
   *
   * @param cause the first one
   */
  default void queryFailed(QueryId query, FaroException cause) {}
}
