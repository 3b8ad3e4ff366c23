package io.faro;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * One shuffle at one worker: the sending and the receiving side. Opened by {@link
 * Worker#openShuffle}.
 *
 * <p>Receivers are numbered 0 … receiverCount-1 in the order of {@link ShuffleSpec#receivers} (with
 * all workers as receivers, that is the worker number). Rows of one sender to one receiver arrive
 * once, whole and in order.
 *
 * <p>{@code try…} never waits; the others wait until done, the time limit, cancel, close or the loss
 * of a peer, and end at once when their thread is interrupted. While a worker waits it moves on
 * everything that others need of it.
 *
 * <p>Threads: those of its worker, one at a time. Use after {@link #close} throws {@link
 * Code#CLOSED}. Failures of the query are thrown by the call that meets them.
 */
public final class Shuffle implements AutoCloseable {
  /** Sizes and offsets of what is read and written without a call; asked from native. */
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
  private final Owner owner; // of the worker
  private final ShuffleSpec spec;
  private final int receiverCount;
  private final long descriptor; // address of what native code says of the frame polled last
  private final long staged; // address: see stagedRows
  private final OpenFrames open; // null: no sender
  private final LocalLanes localLanes;
  private final List<Frame> frames = new ArrayList<>();
  private long handle; // 0: closed

  Shuffle(Worker worker, long handle, ShuffleSpec spec, int workerCount, References references) {
    this.worker = worker;
    owner = worker.owner();
    this.handle = handle;
    this.spec = spec;
    int[] receivers = spec.receivers();
    receiverCount = receivers.length == 0 ? workerCount : receivers.length;
    localLanes = new LocalLanes(references, spec, worker.number(), receiverCount, workerCount);
    long[] addresses = new long[4];
    addresses(handle, addresses);
    descriptor = addresses[0];
    staged = addresses[1];
    boolean isSender = addresses[2] != 0;
    open = isSender ? new OpenFrames(this, addresses[2], addresses[3], receiverCount) : null;
  }

  /** At which worker it was opened. */
  public Worker worker() {
    return worker;
  }

  /** What was opened. */
  public ShuffleSpec spec() {
    return spec;
  }

  /** Number of receivers. */
  public int receiverCount() {
    return receiverCount;
  }

  // --- sending

  /**
   * The zero-copy path for rows that are one long each.
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} if rowBytes is not 8, {@link
   *     Code#WRONG_STATE} if this worker is no sender
   */
  public LongSender longSender() {
    checkSender();
    if (spec.rowBytes() != Long.BYTES) {
      throw new FaroException(
          Code.INVALID_ARGUMENT, "stage " + spec.stage() + ": rows of " + spec.rowBytes() + " bytes, not 8");
    }
    return new LongSender(this, open);
  }

  /**
   * The zero-copy path for rows of any kind: they are written where they are sent from.
   *
   * @throws FaroException {@link Code#WRONG_STATE} if this worker is no sender
   */
  public RowWriter rowWriter() {
    checkSender();
    return new RowWriter(this, open, spec.rowBytes());
  }

  /**
   * Sends objects by a codec, whose rowBytes must be the shuffle's; a shuffle of rows with a length each
   * takes any. By reference, where the codec declares its objects immutable and the rows have a length
   * each, to workers of the same session. Receivers learn the codec's {@link RowCodec#format} ahead of the
   * first row: call this before anything else is sent.
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} if the widths differ, or this worker sends by a codec of
   *     another format already; {@link Code#WRONG_STATE} if this worker is no sender
   */
  public <T> ObjectSender<T> sender(RowCodec<T> codec) {
    checkCodec(codec);
    boolean byReference = codec.immutable() && spec.rowBytes() == 0;
    checkSender();
    nameFormat(codec, false);
    return new ObjectSender<>(this, codec, byReference ? localLanes : null);
  }

  /** Copies one row of {@code bytes} bytes towards a receiver. */
  public Outcome trySend(int receiver, byte[] row, int from, int bytes) {
    call();
    checkSender();
    Objects.checkFromIndexSize(from, bytes, row.length);
    checkReceiver(receiver);
    return Outcome.of(send(handle, receiver, row, from, bytes, 0));
  }

  /** The same, waiting for room. */
  public Outcome send(int receiver, byte[] row, int from, int bytes) throws InterruptedException {
    Outcome outcome = trySend(receiver, row, from, bytes);
    return outcome == Outcome.WOULD_WAIT
        ? worker.await(timeout -> send(handle, receiver, row, from, bytes, timeout), TimeLimit.NONE)
        : outcome;
  }

  /**
   * Copies one row towards several receivers, each named once: to all of them or (WOULD_WAIT) to none.
   */
  public Outcome tryMulticast(int[] receivers, byte[] row, int from, int bytes) {
    return tryMulticastTo(Objects.requireNonNull(receivers), row, from, bytes);
  }

  /** The same, waiting for room. */
  public Outcome multicast(int[] receivers, byte[] row, int from, int bytes)
      throws InterruptedException {
    return multicastTo(Objects.requireNonNull(receivers), row, from, bytes);
  }

  /** One row to all receivers, or (WOULD_WAIT) to none. */
  public Outcome tryBroadcast(byte[] row, int from, int bytes) {
    return tryMulticastTo(null, row, from, bytes);
  }

  /** The same, waiting for room. */
  public Outcome broadcast(byte[] row, int from, int bytes) throws InterruptedException {
    return multicastTo(null, row, from, bytes);
  }

  // To these receivers; null: to all.
  private Outcome multicastTo(int[] receivers, byte[] row, int from, int bytes)
      throws InterruptedException {
    Outcome outcome = tryMulticastTo(receivers, row, from, bytes);
    return outcome == Outcome.WOULD_WAIT
        ? worker.await(timeout -> multicast(handle, receivers, row, from, bytes, timeout), TimeLimit.NONE)
        : outcome;
  }

  private Outcome tryMulticastTo(int[] receivers, byte[] row, int from, int bytes) {
    call();
    checkSender();
    Objects.checkFromIndexSize(from, bytes, row.length);
    if (receivers != null) {
      checkReceivers(receivers);
    }
    return Outcome.of(multicast(handle, receivers, row, from, bytes, 0));
  }

  /**
   * Starts the transfer of everything sent so far, however little. Throws if the query has failed: a loop that
   * neither sends nor receives can ask by it.
   */
  public void flush() {
    call();
    check(flush(handle));
  }

  /** No more rows: every receiver learns it after the last one. Repeatable. */
  public Outcome tryFinish() {
    call();
    return Outcome.of(finish(handle, 0));
  }

  /** The same, waiting for room. */
  public Outcome finish() throws InterruptedException {
    Outcome outcome = tryFinish();
    return outcome == Outcome.WOULD_WAIT
        ? worker.await(timeout -> finish(handle, timeout), TimeLimit.NONE)
        : outcome;
  }

  // --- receiving

  /** A frame to poll into; make it once and use it again. Closed with the shuffle. */
  public Frame newFrame() {
    enter();
    Frame frame = new Frame(this, frames.size());
    frames.add(frame);
    return frame;
  }

  /**
   * Takes the next rows of any sender into {@code frame}, after releasing what it held.
   *
   * @return DONE: the frame has rows; WOULD_WAIT, HOLDING; END_OF_STREAM: every sender has finished
   *     and all rows were handed out
   */
  public Outcome tryPoll(Frame frame) {
    return finishPoll(frame, startPoll(frame, -1));
  }

  /** The same, waiting for rows. */
  public Outcome take(Frame frame) throws InterruptedException {
    return take(frame, -1, TimeLimit.NONE);
  }

  /** The same with a time limit: DEADLINE when it has passed. */
  public Outcome take(Frame frame, Duration timeout) throws InterruptedException {
    return take(frame, -1, TimeLimit.nanos(timeout));
  }

  /** As tryPoll, from one sender only (a worker number), for merging sorted streams. */
  public Outcome tryPollFrom(int sender, Frame frame) {
    return finishPoll(frame, startPoll(frame, checkedSender(sender)));
  }

  /** As take, from one sender only. */
  public Outcome takeFrom(int sender, Frame frame) throws InterruptedException {
    return take(frame, checkedSender(sender), TimeLimit.NONE);
  }

  private Outcome take(Frame frame, int sender, long timeout) throws InterruptedException {
    Outcome outcome = startPoll(frame, sender);
    if (outcome == Outcome.WOULD_WAIT) {
      outcome = worker.await(limit -> poll(handle, frame.number(), sender, limit), timeout);
    }
    return finishPoll(frame, outcome);
  }

  private Outcome startPoll(Frame frame, int sender) {
    call();
    if (frame.shuffle() != this) {
      throw new FaroException(Code.INVALID_ARGUMENT, "the frame belongs to another shuffle");
    }
    frame.forget();
    return Outcome.of(poll(handle, frame.number(), sender, 0));
  }

  private Outcome finishPoll(Frame frame, Outcome outcome) {
    if (outcome == Outcome.DONE) {
      place(frame);
    }
    return outcome;
  }

  /** The frame is the one that native code has described last. */
  private void place(Frame frame) {
    frame.place(
        NativeMemory.getLong(descriptor + Layout.FRAME_ADDRESS),
        (int) NativeMemory.getLong(descriptor + Layout.FRAME_BYTES),
        NativeMemory.getInt(descriptor + Layout.FRAME_ROW_COUNT),
        NativeMemory.getInt(descriptor + Layout.FRAME_ROW_BYTES),
        NativeMemory.getInt(descriptor + Layout.FRAME_SENDER));
  }

  /**
   * Receives objects by a codec, whose rowBytes must be the shuffle's (as {@link #sender}). If a sender's codec has another
   * {@link RowCodec#format} the query fails on every participant before a row of it is read.
   *
   * @throws FaroException {@link Code#STAGE_MISMATCH} if that is known already, else the call says so that would
   *     receive; {@link Code#INVALID_ARGUMENT} if the widths differ, or this worker receives by a codec of another format
   *     already
   */
  public <T> ObjectReceiver<T> receiver(RowCodec<T> codec) {
    checkCodec(codec);
    nameFormat(codec, true);
    return new ObjectReceiver<>(this, codec);
  }

  private void checkCodec(RowCodec<?> codec) {
    if (codec.rowBytes() != spec.rowBytes() && spec.rowBytes() != 0) {
      throw new FaroException(
          Code.INVALID_ARGUMENT,
          "stage " + spec.stage() + ": rowBytes = " + spec.rowBytes() + ", of the codec " + codec.rowBytes());
    }
  }

  // How this worker reads the rows of this shuffle, or else how it sends them.
  private void nameFormat(RowCodec<?> codec, boolean reads) {
    enter();
    String format = codec.format();
    if (!format.isEmpty()) {
      check(nameFormat(handle, format.getBytes(UTF_8), reads));
    }
  }

  /**
   * This receiver needs no more rows; polling answers END_OF_STREAM. Nothing else means this: closing a
   * receiver before the end of stream cancels the query.
   */
  public void stop() {
    call();
    check(stop(handle));
  }

  // --- the query

  /** Fails the query on every participant with {@link Code#QUERY_CANCELLED} and this reason. */
  public void cancel(String reason) {
    call();
    check(cancel(handle, reason.getBytes(UTF_8)));
  }

  /**
   * Closes. A shuffle that is closed before its end cancels the query on every participant, with a cause
   * that names the worker and the stage: a sender that has not finished, and a receiver that was not told
   * END_OF_STREAM (of each sender, if it polls them one by one) and has not called {@link #stop}. So an
   * exception in a receive loop within try-with-resources fails the query everywhere; to give the others a
   * cause of your own, call {@link #cancel} before. Closing twice is fine.
   *
   * @throws FaroException {@link Code#WRONG_STATE} if another thread owns the worker
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
    for (Frame frame : frames) {
      frame.forget();
    }
    if (open != null) {
      open.close();
    }
    localLanes.close();
    close(closing);
  }

  // --- for LongSender, RowWriter, Frame

  /** Called first by every operation: the shuffle is open, the thread owns the worker. */
  void enter() {
    owner.enter();
    if (handle == 0) {
      throw new FaroException(Code.CLOSED, "the shuffle of stage " + spec.stage() + " was closed");
    }
  }

  Owner owner() {
    return owner;
  }

  LocalLanes localLanes() {
    return localLanes;
  }

  /** Before each native call: frames may close in it, which ends claims. */
  private void call() {
    enter();
    owner.nextEpoch();
  }

  Outcome tryMakeRoom(int receiver, int bytes) {
    call();
    return Outcome.of(makeRoom(handle, receiver, bytes, 0));
  }

  Outcome makeRoom(int receiver, int bytes) throws InterruptedException {
    Outcome outcome = tryMakeRoom(receiver, bytes);
    return outcome == Outcome.WOULD_WAIT
        ? worker.await(timeout -> makeRoom(handle, receiver, bytes, timeout), TimeLimit.NONE)
        : outcome;
  }

  /** The address where rows for {@link #trySendStaged} go, {@link Layout#STAGED_ROWS} of them. */
  long stagedRows() {
    return staged;
  }

  /** Sends the first rows staged. How many were taken, with the number of the outcome above it. */
  long trySendStaged(int count, Partition partition) {
    call();
    long result = sendStaged(handle, count, partition.number());
    if (result < 0) {
      throw FaroException.of(result);
    }
    return result;
  }

  /**
   * Where a row goes for which {@link #tryMakeRoom} or {@link #makeRoom} has answered DONE, but opened no frame with room
   * for it: it is too large, or its receiver has stopped. Valid until the next call.
   */
  long apart() {
    return NativeMemory.getLong(descriptor + Layout.FRAME_ADDRESS);
  }

  /** Sends the first {@code bytes} bytes of that row. Never waits. */
  void commitApart(int bytes) {
    call();
    check(commit(handle, bytes));
  }

  void release(Frame frame) {
    call();
    check(release(handle, frame.number()));
  }

  void detach(Frame frame) {
    call();
    check(detach(handle, frame.number()));
    frame.move(NativeMemory.getLong(descriptor + Layout.FRAME_ADDRESS));
  }

  private void checkSender() {
    enter();
    if (open == null) {
      throw new FaroException(
          Code.WRONG_STATE,
          "worker " + worker.number() + " is no sender of stage " + spec.stage());
    }
  }

  private static int checkedSender(int sender) {
    if (sender < 0) {
      throw new FaroException(Code.INVALID_ARGUMENT, "worker " + sender + " is no sender");
    }
    return sender;
  }

  private void checkReceivers(int[] receivers) {
    if (receivers.length == 0) {
      throw new FaroException(Code.INVALID_ARGUMENT, "stage " + spec.stage() + ": a row for no receiver");
    }
    for (int receiver : receivers) {
      checkReceiver(receiver);
    }
  }

  void checkReceiver(int receiver) {
    if (receiver < 0 || receiver >= receiverCount) {
      throw new FaroException(
          Code.INVALID_ARGUMENT,
          "stage " + spec.stage() + ": receiver " + receiver + " does not exist (0 … " + (receiverCount - 1) + ")");
    }
  }

  private static void check(int result) {
    if (result < 0) {
      throw FaroException.of(result);
    }
  }

  private static native void layout(int[] to);

  // Of the descriptor, the staged rows, the cursors and the row counts; the last two 0: no sender.
  private static native void addresses(long handle, long[] to);

  private static native int nameFormat(long handle, byte[] format, boolean reads);

  private static native int makeRoom(long handle, int receiver, int bytes, long timeout);

  private static native int commit(long handle, int bytes);

  private static native int send(
      long handle, int receiver, byte[] row, int from, int bytes, long timeout);

  private static native int multicast(
      long handle, int[] receivers, byte[] row, int from, int bytes, long timeout);

  private static native long sendStaged(long handle, int count, int partition);

  private static native int flush(long handle);

  private static native int finish(long handle, long timeout);

  private static native int poll(long handle, int frame, int sender, long timeout);

  private static native int release(long handle, int frame);

  private static native int detach(long handle, int frame);

  private static native int stop(long handle);

  private static native int cancel(long handle, byte[] reason);

  private static native void close(long handle);
}
