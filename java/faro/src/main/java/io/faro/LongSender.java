package io.faro;

import java.util.Objects;

/**
 * Sends rows that are one long each, written in place in the outgoing rings. Nothing is allocated
 * and no native call is made per row.
 *
 * <p>Waiting, answers, threads and errors are those of {@link ShuffleSender}.
 */
public final class LongSender {
  private final ShuffleSender sender;
  private final Owner owner;
  private final OpenFrames open;
  private final long staged; // address that rows are copied to, many at a time
  private Outcome stoppedBy = Outcome.DONE;

  LongSender(ShuffleSender sender, OpenFrames open) {
    this.sender = sender;
    owner = sender.shuffle().owner();
    this.open = open;
    staged = sender.stagedRows();
  }

  /** Sends one row. */
  @CheckReturnValue
  public Outcome send(int receiver, long row) throws InterruptedException {
    return put(receiver, row) ? Outcome.DONE : sendAfterRoom(receiver, row, Wait.FOREVER);
  }

  /** Sends one row, waiting for room as long as {@code wait} says. */
  @CheckReturnValue
  public <X extends Exception> Outcome send(int receiver, long row, Wait<X> wait) throws X {
    return put(receiver, row) ? Outcome.DONE : sendAfterRoom(receiver, row, wait);
  }

  /**
   * Sends one row if the open frame of its receiver has room for it. False: nothing was done;
   * {@link #send} then opens the next frame, or says why it cannot. Never waits. This is the
   * fastest way to send row by row: a loop of nothing else contains no call, so the compiler keeps
   * everything in registers.
   *
   * <pre>{@code
   * do {
   *   while (at < end && sender.put(receiverOf(rows[at]), rows[at])) {
   *     at++;
   *   }
   * } while (at < end
   *     && sender.send(receiverOf(rows[at]), rows[at], Wait.NONE) == Outcome.DONE
   *     && ++at < end);
   * }</pre>
   */
  @CheckReturnValue
  public boolean put(int receiver, long row) {
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
   * Sends rows[from … to-1], each to the receiver of its value as key. One native call per 1024
   * rows.
   *
   * @return how many rows were taken; if fewer than all, {@link #stoppedBy} says why
   * @throws InterruptedException if the thread is interrupted meanwhile; some rows may have been
   *     sent
   */
  @CheckReturnValue
  public int sendAll(long[] rows, int from, int to, Partition partition)
      throws InterruptedException {
    return sendAll(rows, from, to, partition, Wait.FOREVER);
  }

  /**
   * Sends rows[from … to-1], each to the receiver of its value as key, waiting for room as long
   * as {@code wait} says, for all rows together. Answers how many rows were taken; if fewer than
   * all, {@link #stoppedBy} says why.
   */
  @CheckReturnValue
  public <X extends Exception> int sendAll(
      long[] rows, int from, int to, Partition partition, Wait<X> wait) throws X {
    Objects.requireNonNull(rows, "rows");
    Objects.requireNonNull(partition, "partition");
    Objects.requireNonNull(wait, "wait");
    int taken = sendStaged(rows, from, to, partition);
    if (!wait.goesOn(stoppedBy)) {
      return taken;
    }
    long begin = System.nanoTime();
    while (wait.goesOn(stoppedBy)) {
      int receiver = partition.receiverOf(rows[from + taken], sender.receiverCount());
      Outcome room = sender.makeRoom(receiver, Long.BYTES, wait.since(begin));
      if (room != Outcome.DONE) {
        stoppedBy = room;
        return taken;
      }
      taken += sendStaged(rows, from + taken, to, partition);
    }
    return taken;
  }

  // Sends as many rows as there is room for; the others stay.
  private int sendStaged(long[] rows, int from, int to, Partition partition) {
    Objects.checkFromToIndex(from, to, rows.length);
    int taken = 0;
    stoppedBy = Outcome.DONE;
    while (from + taken < to && stoppedBy == Outcome.DONE) {
      sender.shuffle().enter();
      int some = Math.min(Shuffle.Layout.STAGED_ROWS, to - from - taken);
      NativeMemory.put(staged, rows, from + taken, some);
      long result = sender.sendStaged(some, partition);
      taken += (int) result;
      stoppedBy = Outcome.of((int) (result >>> 32));
    }
    return taken;
  }

  /** Why the last {@link #sendAll} took fewer rows than all; DONE if it took all. */
  public Outcome stoppedBy() {
    return stoppedBy;
  }

  private <X extends Exception> Outcome sendAfterRoom(int receiver, long row, Wait<X> wait)
      throws X {
    Outcome outcome = sender.makeRoom(receiver, Long.BYTES, wait);
    if (outcome == Outcome.DONE && !put(receiver, row)) {
      drop(row);
    }
    return outcome;
  }

  // If a receiver has stopped while others have not, there is no room for its rows: they are
  // dropped, and counted.
  private void drop(long row) {
    NativeMemory.putLong(sender.apart(), row);
    sender.commitApart(Long.BYTES);
  }

  @Override
  public String toString() {
    return "longs by the " + sender;
  }
}
