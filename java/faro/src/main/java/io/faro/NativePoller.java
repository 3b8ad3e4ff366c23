package io.faro;

import java.nio.ByteBuffer;

/**
 * The native side of a poller. Most natives belong to the object, so that the JVM keeps it, and
 * with it the endpoint, as long as a call is under way: nothing native is destroyed before.
 *
 * <p>Threads: those of the poller, except where said.
 */
final class NativePoller {
  /** Sizes and offsets of what native code writes and Java reads, asked from native code. */
  static final class Layout {
    static final int EVENT_BYTES;
    static final int EVENT_INDEX;
    static final int EVENT_GENERATION;
    static final int EVENT_KIND;
    static final int EVENT_TOKEN;
    static final int EVENT_DATA;
    static final int EVENT_LENGTH;
    static final int CLAIM_DATA;
    static final int CLAIM_LENGTH;

    static {
      int[] values = new int[9];
      layout(values);
      EVENT_BYTES = values[0];
      EVENT_INDEX = values[1];
      EVENT_GENERATION = values[2];
      EVENT_KIND = values[3];
      EVENT_TOKEN = values[4];
      EVENT_DATA = values[5];
      EVENT_LENGTH = values[6];
      CLAIM_DATA = values[7];
      CLAIM_LENGTH = values[8];
    }

    private Layout() {}
  }

  /** For all natives. */
  final long handle;

  private final Endpoint endpoint; // which is destroyed when nothing refers to it any more
  private final long claim; // address of the description of the last claim

  NativePoller(Endpoint endpoint, long handle) {
    this.endpoint = endpoint;
    this.handle = handle;
    claim = claimAddress(handle);
  }

  Endpoint endpoint() {
    return endpoint;
  }

  /** The address of the space that was claimed last. */
  long claimed() {
    return NativeMemory.getLong(claim + Layout.CLAIM_DATA);
  }

  /** Its length in bytes. */
  int claimedBytes() {
    return (int) NativeMemory.getLong(claim + Layout.CLAIM_LENGTH);
  }

  private native long claimAddress(long handle);

  /**
   * Stores the channel in {@code to}. Returns zero or the negative code, as all others that return
   * an int and say nothing else.
   */
  native int connect(
      long handle,
      byte[] address,
      int sendBytes,
      int receiveBytes,
      byte[] greeting,
      boolean endsWhenBroken,
      long[] to);

  native int close(long handle, long channel, boolean drain);

  native int status(long handle, long channel);

  /**
   * Stores peer, address, transport and greeting; and sendBytes, receiveBytes, leastFrameBytes,
   * whether it was dialled, and endsWhenBroken.
   */
  native int info(long handle, long channel, byte[][] texts, int[] numbers);

  /**
   * Stores the incoming and the outgoing ring; and their addresses, and the handle for
   * {@link #destroyRings}.
   */
  native int rings(long handle, long channel, ByteBuffer[] buffers, long[] numbers);

  /**
   * Whether there is memory behind these buffers: the channel has not closed, or frames of it are
   * held.
   */
  native boolean hasRings(long handle, long channel);

  /** Writes at most {@code limit} events from that address on. Returns how many. */
  native int poll(long handle, long events, int limit);

  native int release(long handle, long channel, int token);

  /**
   * Releases the frames of the {@code count} events that {@link #poll} has written from that
   * address on.
   */
  native int releaseAll(long handle, long events, int count);

  /** Returns what {@link Outcome#of} expects. */
  native int claim(long handle, long channel, int least, int most);

  native int commit(long handle, long channel, int bytes, boolean quiet);

  /** Commits and posts a frame, and claims the next one. Returns what {@link #claim} returns. */
  native int commitAndClaim(long handle, long channel, int bytes, int least, int most);

  native int post(long handle);

  /**
   * Returns what {@link Outcome#of} expects; WOULD_WAIT for a timeout above 0: {@link #interrupt}
   * has ended it.
   */
  native int await(long handle, long timeout, int wakeFor);

  /** Returns what {@link Outcome#of} expects. */
  native int arm(long handle, int wakeFor);

  /** Returns the descriptor, or the negative code. */
  native int descriptor(long handle);

  /** Threads: any. */
  native void wake(long handle);

  /**
   * Ends the wait under way, and each one that follows, until {@link #clearInterrupt}.
   * Threads: any.
   */
  native void interrupt(long handle);

  native void clearInterrupt(long handle);

  /** Threads: any. */
  native boolean tryEnter(long handle);

  native void leave(long handle);

  private static native void layout(int[] to);

  /** Gives the addresses of rings back. Threads: any. */
  static native void destroyRings(long rings);
}
