package io.faro;

/**
 * Ends a native call that waits ({@link Session#open}, {@link Session#awaitNode}), from another thread.
 * Once cancelled it stays so: calls that are given it then do not wait at all.
 *
 * <p>Threads: any; {@link #close} when no call is to be given it any more.
 */
final class Cancellation implements AutoCloseable {
  private final long handle = create();
  private volatile boolean cancelled;

  /** For the native call. */
  long handle() {
    return handle;
  }

  void cancel() {
    cancelled = true;
    cancel(handle);
  }

  boolean isCancelled() {
    return cancelled;
  }

  /** Gives its memory back. A call that has it already goes on, and is not cancelled any more. */
  @Override
  public void close() {
    destroy(handle);
  }

  private static native long create();

  private static native void cancel(long handle);

  private static native void destroy(long handle);
}
