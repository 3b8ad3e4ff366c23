package io.faro;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.function.IntFunction;

/**
 * The receiving side of a {@link Shuffle} at one worker. Rows come in batches, which are read in
 * place; {@link #objects} turns them into objects.
 *
 * <pre>{@code
 * Batch batch = receiver.newBatch();
 * while (receiver.receive(batch) == Outcome.DONE) {
 *   for (int i = 0; i < batch.rowCount(); i++) use(batch.getLong(8 * i));
 * }
 * }</pre>
 *
 * <p>Threads: those of the worker. Valid as long as its shuffle is open. Failures of the query are
 * thrown: close the shuffle and end the query.
 */
public final class ShuffleReceiver {
  /** Stands for all senders. */
  static final int ANY = -1;

  private final Shuffle shuffle;
  private final Worker worker;
  private final long descriptor; // address of native code's description of the batch received last
  private final List<Batch> batches = new ArrayList<>();
  private final List<Batch> batchesOfExchange = new ArrayList<>();
  private final BitSet ended = new BitSet(); // the senders of which no more rows come
  private RowMemory memory; // null: receiveInto was not called yet

  ShuffleReceiver(Shuffle shuffle, long descriptor) {
    this.shuffle = shuffle;
    worker = shuffle.worker();
    this.descriptor = descriptor;
  }

  /** A batch to receive into; make it once and use it again. Closed with the shuffle. */
  public Batch newBatch() {
    shuffle.enter();
    Batch batch = new Batch(this, batches.size());
    batches.add(batch);
    return batch;
  }

  /**
   * Takes the next rows of any sender into {@code batch}, after releasing what it held; waits for
   * them.
   *
   * @return DONE: the batch has rows; HOLDING; END_OF_STREAM: every sender has finished and all
   *     rows were handed out
   */
  @CheckReturnValue
  public Outcome receive(Batch batch) throws InterruptedException {
    return receive(batch, ANY, Wait.FOREVER);
  }

  /**
   * Takes the next rows of any sender into {@code batch}, after releasing what it held, waiting as
   * long as {@code wait} says: WOULD_WAIT or DEADLINE if nothing has come by then.
   */
  @CheckReturnValue
  public <X extends Exception> Outcome receive(Batch batch, Wait<X> wait) throws X {
    return receive(batch, ANY, wait);
  }

  /**
   * Takes the next rows of one sender, an index in {@link ShuffleSpec#senders}, into {@code batch},
   * after releasing what it held; waits for them. It answers as {@link #receive(Batch)} does, but
   * END_OF_STREAM when that sender has finished. It is for rows that have to be kept apart by
   * sender. To merge objects that come in order, use {@link #merge}.
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} if there is no such sender; {@link
   *     Code#WRONG_STATE} with {@link Delivery#NODE}, where any worker of the node takes the rows
   *     of a sender
   */
  @CheckReturnValue
  public Outcome receiveFrom(int sender, Batch batch) throws InterruptedException {
    return receive(batch, checkedSender(sender), Wait.FOREVER);
  }

  /**
   * Takes the next rows of one sender into {@code batch}, as {@link #receiveFrom(int, Batch)} does,
   * waiting as long as {@code wait} says: WOULD_WAIT or DEADLINE if nothing has come by then.
   */
  @CheckReturnValue
  public <X extends Exception> Outcome receiveFrom(int sender, Batch batch, Wait<X> wait) throws X {
    return receive(batch, checkedSender(sender), wait);
  }

  /**
   * Receives as {@link #receive(Batch)} does, but a row that is larger than a frame is put together
   * in memory of the caller's, and stays there: {@link Batch#memory} says where. It is copied once,
   * from the ring, and takes nothing of overflow.
   *
   * <p>{@code allocate} is called when the first bytes of such a row have come, with its length. It
   * answers a direct buffer that has room for it from its position on, at an address that is a
   * multiple of 64, for instance {@code ByteBuffer.allocateDirect(bytes + 127).alignedSlice(64)},
   * or {@code asByteBuffer()} of a {@code MemorySegment}. It must not use this
   * worker. The buffer is in use by the calls that receive until one of them has handed the row
   * out, has answered END_OF_STREAM, or has thrown the failure of the query, or the shuffle is
   * closed.
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} if {@code allocate} has given no such
   *     buffer: the row stays to be received. So it does if {@code allocate} throws, which is
   *     thrown on
   */
  @CheckReturnValue
  public Outcome receiveInto(Batch batch, IntFunction<ByteBuffer> allocate)
      throws InterruptedException {
    return receiveInto(batch, allocate, Wait.FOREVER);
  }

  /**
   * Receives as {@link #receiveInto(Batch, IntFunction)} does, waiting as long as {@code wait}
   * says: WOULD_WAIT or DEADLINE if nothing has come by then.
   */
  @CheckReturnValue
  public <X extends Exception> Outcome receiveInto(
      Batch batch, IntFunction<ByteBuffer> allocate, Wait<X> wait) throws X {
    Objects.requireNonNull(allocate, "allocate");
    shuffle.enter();
    if (memory == null) {
      memory = new RowMemory(shuffle.owner());
    }
    return receive(batch, ANY, memory.of(allocate), wait);
  }

  /** Takes the next rows of a sender, or of {@link #ANY}. */
  <X extends Exception> Outcome receive(Batch batch, int sender, Wait<X> wait) throws X {
    return receive(batch, sender, null, wait);
  }

  private <X extends Exception> Outcome receive(
      Batch batch, int sender, RowMemory into, Wait<X> wait) throws X {
    Objects.requireNonNull(batch, "batch");
    Objects.requireNonNull(wait, "wait");
    long handle = shuffle.call();
    if (batch.receiver() != this) {
      throw new FaroException(Code.INVALID_ARGUMENT, "the batch belongs to another shuffle");
    }
    batch.forget();
    Outcome outcome = Outcome.of(poll(handle, batch.number(), sender, into, 0));
    if (worker.goesOn(outcome, wait)) {
      outcome = worker.await(timeout -> poll(handle, batch.number(), sender, into, timeout), wait);
    }
    if (outcome == Outcome.DONE) {
      place(batch);
    } else if (outcome == Outcome.END_OF_STREAM) {
      endOf(sender);
    }
    return outcome;
  }

  private void endOf(int sender) {
    if (sender == ANY) {
      ended.set(0, shuffle.spec().senders().length);
    } else {
      ended.set(sender);
    }
  }

  /** Makes the batch the one that native code has described last. */
  private void place(Batch batch) {
    long address = NativeMemory.getLong(descriptor + Shuffle.Layout.FRAME_ADDRESS);
    batch.place(
        address,
        memory == null ? null : memory.handOut(address),
        (int) NativeMemory.getLong(descriptor + Shuffle.Layout.FRAME_BYTES),
        NativeMemory.getInt(descriptor + Shuffle.Layout.FRAME_ROW_COUNT),
        NativeMemory.getInt(descriptor + Shuffle.Layout.FRAME_ROW_BYTES),
        NativeMemory.getInt(descriptor + Shuffle.Layout.FRAME_SENDER));
  }

  /**
   * Receives objects by a codec, whose rowBytes must be the shuffle's (as
   * {@link ShuffleSender#objects}). If a sender's codec has another {@link RowCodec#format} the
   * query fails on every participant before a row of it is read.
   *
   * @throws FaroException {@link Code#STAGE_MISMATCH} if that is known already; otherwise the call
   *     that receives throws it; {@link Code#INVALID_ARGUMENT} if the widths differ, or this worker
   *     receives by a codec of another format already
   */
  public <T> ObjectReceiver<T> objects(RowCodec<T> codec) {
    Objects.requireNonNull(codec, "codec");
    shuffle.nameFormat(codec, true);
    return new ObjectReceiver<>(this, codec, ANY);
  }

  /**
   * Receives objects by a codec as {@link #objects} does, merged: every sender has to send its
   * objects in this order.
   *
   * @throws FaroException as {@link #objects}; with {@link Delivery#NODE}, where any worker takes
   *     the rows of a sender, the first call that receives throws {@link Code#WRONG_STATE}
   */
  public <T> MergingReceiver<T> merge(RowCodec<T> codec, Comparator<? super T> order) {
    Objects.requireNonNull(codec, "codec");
    Objects.requireNonNull(order, "order");
    shuffle.nameFormat(codec, true);
    return new MergingReceiver<>(this, codec, shuffle.spec().senders(), order);
  }

  /**
   * Says that this receiver needs no more rows: from now on receiving answers END_OF_STREAM. Never
   * blocks. Only this call says so: closing a receiver before the end of stream cancels the query.
   */
  public void stop() {
    FaroException.checked(stop(shuffle.call()));
    endOf(ANY);
  }

  // --- for Batch, ObjectReceiver, ExchangePart

  /** Whether END_OF_STREAM was answered of all senders. */
  boolean hasEnded() {
    return ended.cardinality() == shuffle.spec().senders().length;
  }

  /** An empty batch: mostly one alone is used, again and again; more are if some are kept. */
  Batch batchOfExchange() {
    for (Batch batch : batchesOfExchange) {
      if (batch.isEmpty()) {
        return batch;
      }
    }
    Batch batch = newBatch();
    batchesOfExchange.add(batch);
    return batch;
  }

  /** Whether one that was kept still lies in its ring. */
  boolean holdsBatchOfExchange() {
    return batchesOfExchange.stream().anyMatch(Batch::isHeld);
  }

  Shuffle shuffle() {
    return shuffle;
  }

  /** The number of the worker that is this sender. */
  int worker(int sender) {
    return shuffle.spec().senders()[sender];
  }

  /** The shuffle is closed. */
  void close() {
    batches.forEach(Batch::forget);
  }

  void release(Batch batch) {
    FaroException.checked(release(shuffle.call(), batch.number()));
  }

  /** Where its rows lie then. */
  long detach(Batch batch) {
    FaroException.checked(detach(shuffle.call(), batch.number()));
    return NativeMemory.getLong(descriptor + Shuffle.Layout.FRAME_ADDRESS);
  }

  private int checkedSender(int sender) {
    if (sender < 0) {
      int last = shuffle.spec().senders().length - 1;
      throw new FaroException(
          Code.INVALID_ARGUMENT, "sender " + sender + " does not exist (0 … " + last + ")");
    }
    return sender;
  }

  private static native int poll(
      long handle, int batch, int sender, RowMemory into, long timeout);

  private static native int release(long handle, int batch);

  private static native int detach(long handle, int batch);

  private static native int stop(long handle);

  @Override
  public String toString() {
    return "receiver of stage "
        + shuffle.spec().stage() + " of query " + shuffle.spec().query() + ", of " + worker;
  }
}
