package io.faro.bench;

import java.nio.channels.Selector;
import java.util.concurrent.ArrayBlockingQueue;

/**
 * Blocks of rows from one worker to another of the same process: bounded, as sockets are. Each end
 * wakes the other one, which may sleep in its selector.
 *
 * <p>Threads: {@link #offer} and {@link #hasRoom}: the sender's; {@link #poll} and {@link #isEmpty}:
 * the receiver's.
 */
final class NioLane {
  private static final int BLOCKS = 16; // of 8 KiB: about what a socket buffers

  private final ArrayBlockingQueue<long[]> blocks = new ArrayBlockingQueue<>(BLOCKS);
  private final Selector sender;
  private final Selector receiver;
  private volatile boolean senderWaits; // set by the sender before it looks once more

  NioLane(Selector sender, Selector receiver) {
    this.sender = sender;
    this.receiver = receiver;
  }

  /** False if it is full; then the sender is woken when it is so no longer. */
  boolean offer(long[] block) {
    if (!hasRoom(1)) {
      return false;
    }
    blocks.add(block);
    receiver.wakeup();
    return true;
  }

  /** Whether that many blocks can be offered. If not, the sender is woken when some were taken. */
  boolean hasRoom(int count) {
    if (blocks.remainingCapacity() >= count) {
      return true;
    }
    senderWaits = true;
    return blocks.remainingCapacity() >= count;
  }

  /** The next block; null if there is none. */
  long[] poll() {
    long[] block = blocks.poll();
    if (block != null && senderWaits) {
      senderWaits = false;
      sender.wakeup();
    }
    return block;
  }

  boolean isEmpty() {
    return blocks.isEmpty();
  }
}
