package io.faro;

import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The part of a session that has to be closed, apart from the {@link Session} itself, so that a
 * session which nobody refers to any more can still be closed.
 *
 * <p>Threads: any.
 */
final class OpenSession implements Runnable {
  final long handle;
  private final int node;
  private final Throwable opened; // where
  private final AtomicBoolean closed = new AtomicBoolean();
  private SessionBeans beans; // guarded by this; null: none

  OpenSession(long handle, int node, Throwable opened) {
    this.handle = handle;
    this.node = node;
    this.opened = opened;
  }

  synchronized void registerBeans() {
    if (closed.get()) {
      throw new FaroException(Code.SESSION_CLOSED, "the session was closed");
    }
    if (beans == null) {
      beans = new SessionBeans(node, handle);
    }
  }

  /** Closes the session: see {@link Session#close}. */
  void close() {
    boolean isFirst = !closed.getAndSet(true);
    unregisterBeans();
    int result = Session.close(handle);
    OpenEndpoint.endLog(isFirst);
    FaroException.checked(result);
  }

  private synchronized void unregisterBeans() {
    if (beans != null) {
      beans.close();
      beans = null;
    }
  }

  /** Called when nobody refers to the session any more. */
  @Override
  public void run() {
    if (!closed.get()) {
      NativeLog.warn(
          "a session of node " + node
              + " was forgotten: it was never closed, and nobody refers to it; it is"
              + " closed now",
          opened);
      close();
    }
  }
}
