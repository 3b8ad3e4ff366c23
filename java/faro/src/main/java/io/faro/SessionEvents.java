package io.faro;

/**
 * Passes the events of a session to its listener. The network thread must not block, so it only
 * queues events; a thread of this class, which starts with the first listener, makes the calls.
 *
 * <p>Threads: any.
 */
final class SessionEvents {
  // Kinds of events, by the numbers of jni/session_events.cc.
  private static final int CLOSED = 0;
  private static final int NODE_LOST = 1;
  private static final int NODE_LEFT = 2;
  private static final int NODE_RETURNED = 3;
  private static final int QUERY_FAILED = 4;
  private static final int NODE_ADDED = 5;
  private static final int NODE_DRAINED = 6;
  private static final int NODE_REMOVED = 7;

  private final long session;
  private final String name;
  private volatile SessionListener listener;
  private boolean started; // guarded by this

  SessionEvents(int node, long session) {
    this.session = session;
    name = "faro-events-" + node;
  }

  synchronized void listen(SessionListener told) {
    listener = told; // before there are events
    FaroException.checked(listen(session));
    if (!started) {
      started = true;
      DaemonThread.start(name, this::run, told.getClass());
    }
  }

  private void run() {
    long[] event = new long[5];
    for (int kind; (kind = awaitEvent(session, event)) != CLOSED; ) {
      try {
        tell(kind, (int) event[0], new QueryId(event[1], event[2], (int) event[3]), event[4]);
      } catch (RuntimeException | Error problem) { // this thread goes on
        Thread thread = Thread.currentThread();
        thread.getUncaughtExceptionHandler().uncaughtException(thread, problem);
      }
    }
  }

  private void tell(int kind, int node, QueryId query, long cause) {
    switch (kind) {
      case NODE_LOST -> listener.nodeLost(node, FaroException.of(cause));
      case NODE_LEFT -> listener.nodeLeft(node);
      case NODE_RETURNED -> listener.nodeReturned(node);
      case NODE_ADDED -> listener.nodeAdded(node);
      case NODE_DRAINED -> listener.nodeDrained(node);
      case NODE_REMOVED -> listener.nodeRemoved(node);
      case QUERY_FAILED -> listener.queryFailed(query, FaroException.of(cause));
      default -> throw new AssertionError("an event of kind " + kind);
    }
  }

  /** Starts queueing events. Idempotent. */
  private static native int listen(long session);

  /**
   * Blocks until there is an event and returns its kind. Stores in {@code to} the node, the query's
   * counter, incarnation and issuer, and the negative code of the cause, which is also this
   * thread's last error.
   */
  private static native int awaitEvent(long session, long[] to);
}
