package io.faro;

import static io.faro.FaroException.checked;
import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;

/**
 * One shuffle at one worker, opened by {@link Worker#openShuffle}. It reports its state, cancels
 * and closes; rows go through {@link #sender} and {@link #receiver}.
 *
 * <pre>{@code
 * try (Shuffle shuffle = worker.openShuffle(new ShuffleSpec(query, stage, 8))) {
 *   LongSender sender = shuffle.sender().longs();
 *   Batch batch = shuffle.receiver().newBatch();
 *   …
 * }
 * }</pre>
 *
 * <p>Threads: those of its worker, one at a time. Use after {@link #close} throws
 * {@link Code#CLOSED}. A failure of the query is thrown by the next call.
 */
public final class Shuffle implements AutoCloseable {
  /**
   * Sizes and offsets of the memory that is read and written without a call; native code provides
   * them.
   */
  static final class Layout {
    static final int CURSOR_BYTES;
    static final int CURSOR_AT;
    static final int CURSOR_END;
    static final int FRAME_BYTES;
    static final int FRAME_ROW_COUNT;
    static final int FRAME_SENDER;
    static final int FRAME_ADDRESS;
    static final int FRAME_ROW_BYTES;
    static final int STAGED_ROWS;

    static {
      int[] values = new int[9];
      layout(values);
      CURSOR_BYTES = values[0];
      CURSOR_AT = values[1];
      CURSOR_END = values[2];
      FRAME_BYTES = values[3];
      FRAME_ROW_COUNT = values[4];
      FRAME_SENDER = values[5];
      FRAME_ADDRESS = values[6];
      FRAME_ROW_BYTES = values[7];
      STAGED_ROWS = values[8];
    }

    private Layout() {}
  }

  private final Worker worker;
  private final List<Shuffle> open; // those of the worker
  private final Owner owner; // of the worker
  private final ShuffleSpec spec;
  private final ShuffleSender sender; // null: this worker is no sender
  private final ShuffleReceiver receiver; // null: this worker is no receiver
  private long handle; // 0: closed
  private ShuffleMetrics last; // since it is closed

  /**
   * Stands for a shuffle that native code has opened by this spec, and is in the list of open ones
   * as long as it is.
   */
  Shuffle(Worker worker, long handle, ShuffleSpec opened, List<Shuffle> open) {
    this.worker = worker;
    this.open = open;
    owner = worker.owner();
    this.handle = handle;
    spec = opened.withSenders(workers(handle, false)).withReceivers(workers(handle, true));
    int[] receivers = spec.receivers();
    long[] addresses = new long[5];
    addresses(handle, addresses);
    boolean sends = addresses[2] != 0;
    sender = sends ? new ShuffleSender(this, (int) addresses[4], addresses) : null;
    boolean receives = IntStream.of(receivers).anyMatch(number -> number == worker.number());
    receiver = receives ? new ShuffleReceiver(this, addresses[0]) : null;
    open.add(this);
  }

  /** The worker that opened it. */
  public Worker worker() {
    return worker;
  }

  /** The spec that was opened, with all senders and receivers named, also if it named none. */
  public ShuffleSpec spec() {
    return spec;
  }

  /** Whether this worker is one of {@link ShuffleSpec#senders}. */
  public boolean isSender() {
    return sender != null;
  }

  /** Whether this worker is one of {@link ShuffleSpec#receivers}. */
  public boolean isReceiver() {
    return receiver != null;
  }

  /**
   * The sending side; always the same object.
   *
   * @throws FaroException {@link Code#WRONG_STATE} if this worker is no sender: ask
   *     {@link #isSender} before
   */
  public ShuffleSender sender() {
    enter();
    if (sender == null) {
      throw noPart("sender");
    }
    return sender;
  }

  /**
   * The receiving side; always the same object.
   *
   * @throws FaroException {@link Code#WRONG_STATE} if this worker is no receiver: ask
   *     {@link #isReceiver} before
   */
  public ShuffleReceiver receiver() {
    enter();
    if (receiver == null) {
      throw noPart("receiver");
    }
    return receiver;
  }

  private FaroException noPart(String side) {
    return new FaroException(
        Code.WRONG_STATE,
        "worker " + worker.number() + " is no " + side + " of stage " + spec.stage());
  }

  /**
   * Throws the query's failure if it has failed; never blocks. For loops that neither send nor
   * receive: calls that send or receive throw it themselves.
   */
  public void checkQuery() {
    call();
    checked(status(handle));
  }

  /**
   * Fails the query on every participant with {@link Code#QUERY_CANCELLED} and this reason, at
   * once. Never blocks.
   */
  public void cancel(String reason) {
    Objects.requireNonNull(reason, "reason");
    call();
    checked(cancel(handle, reason.getBytes(UTF_8)));
  }

  /**
   * What it has counted: rows and bytes to each receiver and from each sender, what it was blocked
   * on, what was spilled. Also after {@link #close}, with what closing did.
   * {@link Session#shuffleMetrics} has the same of all shuffles of a query.
   *
   * @throws FaroException {@link Code#RESOURCE_LIMIT} if there is no memory for it;
   *     {@link Code#CLOSED} if there was none while it closed
   */
  public ShuffleMetrics metrics() {
    owner.enter();
    if (handle != 0) {
      return NativeMetrics.ofShuffle(handle, spec.query());
    }
    if (last == null) {
      throw new FaroException(
          Code.CLOSED,
          "the shuffle of stage " + spec.stage()
              + " was closed, and what it has counted was not read");
    }
    return last;
  }

  /**
   * Closes. A shuffle that is closed before its end cancels the query on every participant, with a
   * cause that names the worker and the stage: a sender that has not finished, and a receiver that
   * was not told END_OF_STREAM (from each sender, if it receives from them one by one) and has not
   * called {@link ShuffleReceiver#stop}. So an exception in a receive loop within
   * try-with-resources fails the query everywhere. That cause is a last resort: nobody is told it
   * at once, so that the block which catches the exception can say why, by
   * {@link Worker#endQuery(QueryId, Throwable)}; then that alone is told. Otherwise the others are
   * told after 100 ms, or before, when the worker makes any other call. What fails the query
   * meanwhile, {@link #cancel} too, is its cause. Closing twice is allowed, and so is closing after
   * the worker has ended its part with a failure, which closes it.
   *
   * @throws FaroException {@link Code#WRONG_STATE} if another thread owns the worker;
   *     {@link Code#RESOURCE_LIMIT} if it was closed, but there is no memory for its
   *     {@link #metrics}
   */
  @Override
  public void close() {
    if (handle == 0) {
      return;
    }
    owner.enter();
    owner.nextEpoch();
    long closing = handle;
    handle = 0;
    open.remove(this);
    try {
      if (receiver != null) {
        receiver.close();
      }
      if (sender != null) {
        sender.close();
      }
      close(closing);
      last = NativeMetrics.ofShuffle(closing, spec.query());
    } finally {
      destroy(closing);
    }
  }

  /** Closes, as the worker's part of the query has failed. */
  void end() {
    try {
      close();
    } catch (FaroException noMetrics) {
      last = null; // it is closed all the same, and metrics() says so
    }
  }

  // --- for its two sides

  /** Called first by every operation: the shuffle is open, the thread owns the worker. */
  void enter() {
    owner.enter();
    if (handle == 0) {
      throw new FaroException(Code.CLOSED, "the shuffle of stage " + spec.stage() + " was closed");
    }
  }

  /**
   * Called before each native call, and returns the handle for it: frames may close in that call,
   * which ends claims.
   */
  long call() {
    enter();
    owner.nextEpoch();
    return handle;
  }

  Owner owner() {
    return owner;
  }

  /**
   * Sets the format in which this worker reads the rows of this shuffle, or else sends them; checks
   * that the codec's rows fit.
   */
  void nameFormat(RowCodec<?> codec, boolean reads) {
    spec.checkCodec(codec);
    enter();
    String format = codec.format();
    if (!format.isEmpty()) {
      checked(nameFormat(handle, format.getBytes(UTF_8), reads));
    }
  }

  private static native void layout(int[] to);

  // The addresses of the descriptor, the staged rows, the cursors and the row counts, and how many
  // of the last two there are; the last three are 0 if this worker is no sender.
  private static native void addresses(long handle, long[] to);

  // The numbers of all receivers, or of all senders.
  private static native int[] workers(long handle, boolean receivers);

  private static native int nameFormat(long handle, byte[] format, boolean reads);

  private static native int status(long handle);

  private static native int cancel(long handle, byte[] reason);

  // Closes; what it has counted can still be read.
  private static native void close(long handle);

  // Closes if it is open, and ends the handle.
  private static native void destroy(long handle);

  @Override
  public String toString() {
    return "shuffle of " + worker + ", " + spec;
  }
}
