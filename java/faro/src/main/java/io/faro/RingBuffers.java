package io.faro;

import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The two rings of a channel as buffers, made once for each channel. Their memory is the channel's,
 * and goes with it. What the buffers keep, until both of them and all their slices and duplicates
 * are garbage, are the addresses: an access after the end is an error, and never reaches anything
 * else.
 *
 * <p>Threads: those of the poller.
 */
final class RingBuffers {
  private final long channel;
  private final ByteBuffer incoming; // read-only
  private final ByteBuffer outgoing;
  private final long incomingAddress;
  private final long outgoingAddress;

  private RingBuffers(long channel, ByteBuffer[] buffers, long[] numbers) {
    this.channel = channel;
    incoming = buffers[0].asReadOnlyBuffer(); // refers to the one that it was made from
    outgoing = buffers[1];
    incomingAddress = numbers[0];
    outgoingAddress = numbers[1];
  }

  /**
   * @throws FaroException {@link Code#CLOSED} if the channel has not opened, or has closed and no
   *     frame of it is held
   */
  static RingBuffers of(NativePoller poller, long channel) {
    ByteBuffer[] buffers = new ByteBuffer[2];
    long[] numbers = new long[3];
    int result = poller.rings(poller.handle, channel, buffers, numbers);
    if (result < 0) {
      throw FaroException.of(result);
    }
    AtomicInteger left = new AtomicInteger(buffers.length);
    for (ByteBuffer buffer : buffers) {
      Session.CLEANER.register(buffer, letGoBy(left, numbers[2]));
    }
    return new RingBuffers(channel, buffers, numbers);
  }

  // Refers to no buffer.
  private static Runnable letGoBy(AtomicInteger left, long rings) {
    return () -> {
      if (left.decrementAndGet() == 0) {
        NativePoller.destroyRings(rings);
      }
    };
  }

  /**
   * The memory is gone. An access by these two objects says so by an exception, one by a slice by
   * an InternalError.
   */
  void end() {
    incoming.limit(0);
    outgoing.limit(0);
  }

  long channel() {
    return channel;
  }

  ByteBuffer incoming() {
    return incoming;
  }

  ByteBuffer outgoing() {
    return outgoing;
  }

  int incomingOffset(long address) {
    return (int) (address - incomingAddress);
  }

  int outgoingOffset(long address) {
    return (int) (address - outgoingAddress);
  }
}
