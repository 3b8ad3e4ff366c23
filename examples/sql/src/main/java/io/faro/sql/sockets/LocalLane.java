package io.faro.sql.sockets;

import java.util.concurrent.ArrayBlockingQueue;

/**
 * Blocks of rows from one worker to another of the same process: bounded, as sockets are. Each end wakes the other
 * one if it sleeps.
 *
 * <p>Threads: {@link #offer} is the sender's, {@link #peek} and {@link #remove} are the receiver's.
 */
final class LocalLane {
  /** Rows, the very arrays; null: the sender has no more. */
  record Block(long query, int stage, Object[][] rows) {}

  private static final int BLOCKS = 16; // of 256 rows: as many as Faro has under way by reference

  private final ArrayBlockingQueue<Block> blocks = new ArrayBlockingQueue<>(BLOCKS);
  private final SocketWorker sender;
  private final SocketWorker receiver;

  LocalLane(SocketWorker sender, SocketWorker receiver) {
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
