package io.faro;

/**
 * Receives the events of a session. The default methods ignore them.
 *
 * <p>Threads: each session with a listener has one thread, which makes the calls one after the
 * other, in the order of the events. A call that blocks delays only later calls; an exception goes
 * to the thread's uncaught exception handler. A call may be made while {@link Session#close} is
 * running, but events that closing this session causes are not reported. A session that only its
 * listener refers to is not closed automatically, so close it yourself.
 */
public interface SessionListener {
  /**
   * A node was lost: it died, hung or violated the protocol. Queries that contain it have failed.
   *
   * @param cause the cause of these failures, which names the node; {@link Code#PEER_LOST} or
   *     {@link Code#PROTOCOL_ERROR}
   */
  default void nodeLost(int node, FaroException cause) {}

  /**
   * A node has closed its session. Queries that still needed it have failed, as if it had been
   * lost. If this node is drained: or it has let this node go.
   */
  default void nodeLeft(int node) {}

  /**
   * A node that was lost, had left or was missing has joined: queries may contain it, as after
   * {@link Session#awaitNode}. Also, without a {@link #nodeLost} before, another process of a node
   * whose link was let go ({@code link.idle_ms}).
   */
  default void nodeReturned(int node) {}

  /**
   * A node that {@link Session#addNode} has added is there for the first time: queries may contain
   * it.
   */
  default void nodeAdded(int node) {}

  /**
   * What {@link Session#drainNode} began is done: no query that was begun here, or by a node that
   * is linked with this one, needs the node, and there is no link with it. Of the own node: no
   * other node is linked with it any more. Once every node has told this, also those whose links
   * were let go before ({@code link.idle_ms}), its session can be closed, and no query fails by
   * that.
   */
  default void nodeDrained(int node) {}

  /** The session knows nothing of the node any more: its number can be used again. */
  default void nodeRemoved(int node) {}

  /**
   * A query that this node uses, declared or began has failed. Called once per query; the workers
   * must still end it.
   *
   * @param cause the first cause
   */
  default void queryFailed(QueryId query, FaroException cause) {}
}
