package io.faro;

import java.util.Objects;

/**
 * Sends rows that are one long each, written in place in the outgoing rings. Nothing is allocated and
 * no native call is made per row.
 *
 * <p>Threads: those of the worker. Valid as long as its shuffle is open.
 */
public final class LongSender {
  private final Shuffle shuffle;
  private final Owner owner;
  private final OpenFrames open;
  private final long staged; // address of where rows are copied to, many at a time
  private Outcome stoppedBy = Outcome.DONE;

  LongSender(Shuffle shuffle, OpenFrames open) {
    this.shuffle = shuffle;
    owner = shuffle.owner();
    this.open = open;
    staged = shuffle.stagedRows();
  }

  /** Sends one row; WOULD_WAIT if there is no room now. */
  public Outcome trySend(int receiver, long row) {
    return tryPut(receiver, row) ? Outcome.DONE : trySendAfterRoom(receiver, row);
  }

  /** The same, waiting for room. */
  public Outcome send(int receiver, long row) throws InterruptedException {
    return tryPut(receiver, row) ? Outcome.DONE : afterRoom(shuffle.makeRoom(receiver, Long.BYTES), receiver, row);
  }

  /**
   * Sends one row if the open frame of its receiver has room for it. False: nothing was done; {@link #trySend} or {@link
   * #send} then opens the next frame, or tells why there is none. The fastest way to send row by row: a loop of this
   * alone has no call in it, so that the compiler keeps what it needs in registers.
   *
   * <pre>{@code
   * do {
   *   while (at < end && sender.tryPut(receiverOf(rows[at]), rows[at])) {
   *     at++;
   *   }
   * } while (at < end && sender.trySend(receiverOf(rows[at]), rows[at]) == Outcome.DONE && ++at < end);
   * }</pre>
   */
  public boolean tryPut(int receiver, long row) {
    owner.enter();
    if (!open.has(receiver)) {
      open.check(receiver);
    }
    long cursor = open.cursor(receiver);
    long at = OpenFrames.at(cursor);
    if (OpenFrames.room(cursor) < Long.BYTES) {
      return false;
    }
    NativeMemory.putLong(at, row);
    OpenFrames.move(cursor, at + Long.BYTES);
    return true;
  }

  /**
   * Sends rows[from … to-1], each to the receiver of its value as key, or as many as there is room
   * for. One native call per 1024 rows.
   *
   * @return how many were taken; {@link #stoppedBy} says why not all were taken
   */
  public int trySendAll(long[] rows, int from, int to, Partition partition) {
    Objects.checkFromToIndex(from, to, rows.length);
    int taken = 0;
    stoppedBy = Outcome.DONE;
    while (from + taken < to && stoppedBy == Outcome.DONE) {
      shuffle.enter();
      int some = Math.min(Shuffle.Layout.STAGED_ROWS, to - from - taken);
      NativeMemory.put(staged, rows, from + taken, some);
      long result = shuffle.trySendStaged(some, partition);
      taken += (int) result;
      stoppedBy = Outcome.of((int) (result >>> 32));
    }
    return taken;
  }

  /**
   * The same, waiting for room: takes fewer than all only if it is stopped by {@link Outcome#STOPPED} or
   * {@link Outcome#HOLDING}.
   *
   * @throws InterruptedException if the thread is interrupted meanwhile; some rows may have been sent
   */
  public int sendAll(long[] rows, int from, int to, Partition partition) throws InterruptedException {
    int taken = trySendAll(rows, from, to, partition);
    while (stoppedBy == Outcome.WOULD_WAIT) {
      Outcome room = shuffle.makeRoom(partition.receiverOf(rows[from + taken], shuffle.receiverCount()), Long.BYTES);
      if (room != Outcome.DONE) {
        stoppedBy = room;
        return taken;
      }
      taken += trySendAll(rows, from + taken, to, partition);
    }
    return taken;
  }

  /** Why the last trySendAll or sendAll took fewer rows than all; DONE if it took all. */
  public Outcome stoppedBy() {
    return stoppedBy;
  }

  private Outcome trySendAfterRoom(int receiver, long row) {
    return afterRoom(shuffle.tryMakeRoom(receiver, Long.BYTES), receiver, row);
  }

  private Outcome afterRoom(Outcome outcome, int receiver, long row) {
    if (outcome == Outcome.DONE && !tryPut(receiver, row)) {
      drop(row);
    }
    return outcome;
  }

  // A receiver that has stopped while others have not gets no room: its rows are dropped, and counted.
  private void drop(long row) {
    NativeMemory.putLong(shuffle.apart(), row);
    shuffle.commitApart(Long.BYTES);
  }
}
