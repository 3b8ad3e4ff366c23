package io.faro;

import java.util.Objects;

/**
 * The sending side of a {@link Shuffle} at one worker. This class sends rows as arrays of bytes;
 * {@link #longs}, {@link #memory}, {@link #rows} and {@link #objects} are faster or easier, and can
 * be mixed.
 *
 * <p>Receivers are numbered 0 … receiverCount-1 in the order of {@link ShuffleSpec#receivers}, as
 * {@link Shuffle#spec} names them (with all workers as receivers, that is the worker number). With
 * {@linkplain ShuffleSpec#withGroups groups} a receiver of all calls is a group, by its index; with
 * {@link Delivery#NODE} it is a node, and with {@link Delivery#REPLICATE} there is one. Rows of one
 * sender to one receiver arrive once, whole and in order. A row is copied, or written in
 * place, before the call returns.
 *
 * <p>Waiting: the last argument says how long a call may wait; without it, forever. While a worker
 * waits it does everything that others need from it. A call answers {@link Outcome#DONE};
 * {@link Outcome#WOULD_WAIT} (by {@link Wait#NONE}), {@link Outcome#DEADLINE} (by
 * {@link Wait#atMost}), {@link Outcome#HOLDING} or {@link Outcome#STOPPED} if the row was not sent.
 *
 * <p>Threads: those of the worker. Valid as long as its shuffle is open. Errors:
 * {@link Code#INVALID_ARGUMENT} for a receiver that does not exist or is named twice, a row of
 * another width than the shuffle's, or a row above {@code row.limit_bytes}: nothing was sent, and
 * the query continues. Failures of the query are thrown: close the shuffle and end the query.
 */
public final class ShuffleSender {
  private final Shuffle shuffle;
  private final Worker worker;
  private final ShuffleSpec spec;
  private final int receiverCount;
  private final long descriptor; // address of native code's description of a claim
  private final long staged; // address: see stagedRows
  private final OpenFrames open;
  private boolean isFinishing; // finish was called
  private boolean hasFinished; // and was done

  ShuffleSender(Shuffle shuffle, int receiverCount, long[] addresses) {
    this.shuffle = shuffle;
    worker = shuffle.worker();
    spec = shuffle.spec();
    this.receiverCount = receiverCount;
    descriptor = addresses[0];
    staged = addresses[1];
    open = new OpenFrames(this, addresses[2], addresses[3], receiverCount);
  }

  /**
   * Number of receivers; of groups, if the spec has {@linkplain ShuffleSpec#withGroups groups}, of
   * nodes with {@link Delivery#NODE}, one with {@link Delivery#REPLICATE}.
   */
  public int receiverCount() {
    return receiverCount;
  }

  /**
   * The zero-copy path for rows that are one long each.
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} if rowBytes is not 8
   */
  public LongSender longs() {
    shuffle.enter();
    if (spec.rowBytes() != Long.BYTES) {
      throw new FaroException(
          Code.INVALID_ARGUMENT,
          "stage " + spec.stage() + ": rows of " + spec.rowBytes() + " bytes, not 8");
    }
    return new LongSender(this, open);
  }

  /** Sends rows of any width that lie in memory outside the Java heap, many by one call. */
  public MemorySender memory() {
    shuffle.enter();
    return new MemorySender(this);
  }

  /** The zero-copy path for rows of any kind: they are written where they are sent from. */
  public RowWriter rows() {
    shuffle.enter();
    return new RowWriter(this, open, spec.rowBytes());
  }

  /**
   * Sends objects by a codec, whose rowBytes must be the shuffle's; a shuffle of rows with a length
   * each takes any. Receivers learn the codec's {@link RowCodec#format} before the first row, so
   * call this before anything else is sent.
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} if the widths differ, or this worker sends
   *     by a codec of another format already
   */
  public <T> ObjectSender<T> objects(RowCodec<T> codec) {
    Objects.requireNonNull(codec, "codec");
    shuffle.nameFormat(codec, false);
    return new ObjectSender<>(this, codec);
  }

  /** Sends a copy of one row of {@code bytes} bytes. */
  @CheckReturnValue
  public Outcome send(int receiver, byte[] row, int from, int bytes) throws InterruptedException {
    return send(receiver, row, from, bytes, Wait.FOREVER);
  }

  /**
   * Sends a copy of one row of {@code bytes} bytes, waiting for room as long as {@code wait} says.
   */
  @CheckReturnValue
  public <X extends Exception> Outcome send(
      int receiver, byte[] row, int from, int bytes, Wait<X> wait) throws X {
    long handle = shuffle.call();
    Objects.requireNonNull(wait, "wait");
    Objects.checkFromIndexSize(from, bytes, Objects.requireNonNull(row, "row").length);
    checkReceiver(receiver);
    Outcome outcome = Outcome.of(send(handle, receiver, row, from, bytes, 0));
    return worker.goesOn(outcome, wait)
        ? worker.await(timeout -> send(handle, receiver, row, from, bytes, timeout), wait)
        : outcome;
  }

  /** Sends a copy of one row to several receivers, each named once: to all of them or to none. */
  @CheckReturnValue
  public Outcome multicast(int[] receivers, byte[] row, int from, int bytes)
      throws InterruptedException {
    return multicast(receivers, row, from, bytes, Wait.FOREVER);
  }

  /**
   * Sends a copy of one row to several receivers, each named once: to all of them or to none. It
   * waits for room as long as {@code wait} says.
   */
  @CheckReturnValue
  public <X extends Exception> Outcome multicast(
      int[] receivers, byte[] row, int from, int bytes, Wait<X> wait) throws X {
    shuffle.enter();
    checkReceivers(receivers);
    return multicastTo(receivers, row, from, bytes, wait);
  }

  /** Sends a copy of one row to all receivers, or to none. */
  @CheckReturnValue
  public Outcome broadcast(byte[] row, int from, int bytes) throws InterruptedException {
    return broadcast(row, from, bytes, Wait.FOREVER);
  }

  /**
   * Sends a copy of one row to all receivers, or to none, waiting for room as long as {@code wait}
   * says.
   */
  @CheckReturnValue
  public <X extends Exception> Outcome broadcast(byte[] row, int from, int bytes, Wait<X> wait)
      throws X {
    return multicastTo(null, row, from, bytes, wait);
  }

  // Sends a copy of one row to these receivers; null: to all.
  private <X extends Exception> Outcome multicastTo(
      int[] receivers, byte[] row, int from, int bytes, Wait<X> wait) throws X {
    long handle = shuffle.call();
    Objects.requireNonNull(wait, "wait");
    Objects.checkFromIndexSize(from, bytes, Objects.requireNonNull(row, "row").length);
    Outcome outcome = Outcome.of(multicast(handle, receivers, row, from, bytes, 0));
    return worker.goesOn(outcome, wait)
        ? worker.await(timeout -> multicast(handle, receivers, row, from, bytes, timeout), wait)
        : outcome;
  }

  /**
   * Starts the transfer of everything sent so far, however little. Never blocks. Rows are sent
   * without it, too, when a frame is full, when the worker waits, and by {@link #finish}.
   */
  public void flush() {
    FaroException.checked(flush(shuffle.call()));
  }

  /** Says that there are no more rows; every receiver learns it after the last row. Repeatable. */
  @CheckReturnValue
  public Outcome finish() throws InterruptedException {
    return finish(Wait.FOREVER);
  }

  /**
   * Says that there are no more rows, waiting as long as {@code wait} says; every receiver learns
   * it after the last row. Repeatable.
   */
  @CheckReturnValue
  public <X extends Exception> Outcome finish(Wait<X> wait) throws X {
    Objects.requireNonNull(wait, "wait");
    long handle = shuffle.call();
    Outcome outcome = Outcome.of(finish(handle, 0));
    isFinishing = true;
    if (worker.goesOn(outcome, wait)) {
      outcome = worker.await(timeout -> finish(handle, timeout), wait);
    }
    hasFinished |= outcome == Outcome.DONE;
    return outcome;
  }

  // --- for LongSender, RowWriter, MemorySender, ObjectSender, ExchangePart

  boolean isFinishing() {
    return isFinishing;
  }

  boolean hasFinished() {
    return hasFinished;
  }

  Shuffle shuffle() {
    return shuffle;
  }

  ShuffleSpec spec() {
    return spec;
  }

  /** The shuffle is closed. */
  void close() {
    open.close();
  }

  <X extends Exception> Outcome makeRoom(int receiver, int bytes, Wait<X> wait) throws X {
    long handle = shuffle.call();
    Outcome outcome = Outcome.of(makeRoom(handle, receiver, bytes, 0));
    return worker.goesOn(outcome, wait)
        ? worker.await(timeout -> makeRoom(handle, receiver, bytes, timeout), wait)
        : outcome;
  }

  /**
   * The address where rows for {@link #sendStaged} go, {@link Shuffle.Layout#STAGED_ROWS} of them.
   */
  long stagedRows() {
    return staged;
  }

  /**
   * Sends the first staged rows. Returns how many were taken, with the number of the outcome in the
   * bits above. Never waits.
   */
  long sendStaged(int count, Partition partition) {
    return FaroException.checked(sendStaged(shuffle.call(), count, partition.number()));
  }

  /**
   * The place of a row for which {@link #makeRoom} has answered DONE without opening a frame with
   * room for it, because it is too large or its receiver has stopped. Valid until the next call.
   */
  long apart() {
    return NativeMemory.getLong(descriptor + Shuffle.Layout.FRAME_ADDRESS);
  }

  /** Sends the first {@code bytes} bytes of that row. Never waits. */
  void commitApart(int bytes) {
    FaroException.checked(commit(shuffle.call(), bytes));
  }

  void checkReceivers(int[] receivers) {
    if (Objects.requireNonNull(receivers, "receivers").length == 0) {
      throw new FaroException(
          Code.INVALID_ARGUMENT, "stage " + spec.stage() + ": a row for no receiver");
    }
    for (int receiver : receivers) {
      checkReceiver(receiver);
    }
  }

  void checkReceiver(int receiver) {
    if (receiver < 0 || receiver >= receiverCount) {
      throw new FaroException(
          Code.INVALID_ARGUMENT,
          "stage " + spec.stage() + (spec.groups().length == 0 ? ": receiver " : ": group ")
              + receiver + " does not exist (0 … " + (receiverCount - 1) + ")");
    }
  }

  private static native int makeRoom(long handle, int receiver, int bytes, long timeout);

  private static native int commit(long handle, int bytes);

  private static native int send(
      long handle, int receiver, byte[] row, int from, int bytes, long timeout);

  private static native int multicast(
      long handle, int[] receivers, byte[] row, int from, int bytes, long timeout);

  private static native long sendStaged(long handle, int count, int partition);

  private static native int flush(long handle);

  private static native int finish(long handle, long timeout);

  @Override
  public String toString() {
    return "sender of stage " + spec.stage() + " of query " + spec.query() + ", of " + worker;
  }
}
