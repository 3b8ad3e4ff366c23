package io.faro.sockets;

import java.util.concurrent.ArrayBlockingQueue;

/**
 * Blocks of rows from one worker to another of the same process: bounded, as sockets are. Each end wakes the other
 * one if it sleeps.
 *
 * <p>Threads: {@link #offer} is the sender's, {@link #peek} and {@link #remove} are the receiver's.
 */
final class LocalLane {
  /** Rows: a long[] or an Object[], the very array; null: the sender has no more. */
  record Block(long query, int stage, Object rows) {}

  private static final int BLOCKS = 16;

  private final ArrayBlockingQueue<Block> blocks = new ArrayBlockingQueue<>(BLOCKS);
  private final SocketsWorker sender;
  private final SocketsWorker receiver;

  LocalLane(SocketsWorker sender, SocketsWorker receiver) {
    this.sender = sender;
    this.receiver = receiver;
  }

  /** False if it is full. */
  boolean offer(Block block) {
    boolean taken = blocks.offer(block);
    if (taken) {
      receiver.wakeIfItSleeps();
    }
    return taken;
  }

  /** The next block; null: none. */
  Block peek() {
    return blocks.peek();
  }

  /** Takes the block that was peeked at. */
  void remove() {
    blocks.remove();
    sender.wakeIfItSleeps();
  }

  /** Whether it has nothing for this query or for an earlier one. */
  boolean isEmpty(long query) {
    Block block = blocks.peek();
    return block == null || block.query() > query;
  }
}
