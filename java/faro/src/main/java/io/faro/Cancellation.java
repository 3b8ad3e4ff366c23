package io.faro;

/**
 * Lets another thread end a native call that waits ({@link Session#open},
 * {@link Session#awaitNode}). A cancellation is final: calls that receive it later do not wait at
 * all.
 *
 * <p>Threads: any. Call {@link #close} when no further call will get it.
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

  /** Frees its memory. A call that already has it continues, and can no longer be cancelled. */
  @Override
  public void close() {
    destroy(handle);
  }

  private static native long create();

  private static native void cancel(long handle);

  private static native void destroy(long handle);
}
