package io.faro;

import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The part of an endpoint that has to be closed and destroyed, apart from the {@link Endpoint}
 * itself: it is destroyed when nobody refers to that any more.
 *
 * <p>Threads: any.
 */
final class OpenEndpoint implements Runnable {
  private final long handle;
  private final long[] pollers; // their handles
  private final String address;
  private final Throwable opened; // where
  private final AtomicBoolean closed = new AtomicBoolean();

  OpenEndpoint(long handle, long[] pollers, String address, Throwable opened) {
    this.handle = handle;
    this.pollers = pollers;
    this.address = address;
    this.opened = opened;
  }

  long handle() {
    return handle;
  }

  /** Closes the endpoint: see {@link Endpoint#close}. */
  void close() {
    boolean isFirst = !closed.getAndSet(true);
    Endpoint.close(handle);
    endLog(isFirst);
  }

  /** When it was closed: what that has logged is written. */
  static void endLog(boolean isFirst) {
    if (isFirst) {
      NativeLog.leave();
    } else {
      NativeLog.drain();
    }
  }

  /** Called when nobody refers to the endpoint any more. */
  @Override
  public void run() {
    if (!closed.get()) {
      NativeLog.warn(
          "the endpoint " + address
              + " was forgotten: it was never closed, and nobody refers to it; it is closed now",
          opened);
      close();
    }
    Endpoint.destroy(handle, pollers);
  }
}
