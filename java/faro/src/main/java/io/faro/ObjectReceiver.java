package io.faro;

import java.util.Iterator;
import java.util.function.Consumer;

/**
 * Receives objects by a codec, one at a time.
 *
 * <pre>{@code
 * for (String word : shuffle.receiver().objects(RowCodecs.STRING)) {
 *   count(word);
 * }
 * }</pre>
 *
 * <p>It holds the batch that it reads from. So while objects of that batch are left, a send of the
 * same worker that finds no room goes to the outgoing overflow. Threads: those of the worker.
 *
 * @param <T> the type of the objects
 */
public final class ObjectReceiver<T> implements Iterable<T> {
  private final ShuffleReceiver receiver;
  private final RowCodec<T> codec;
  private final int from; // the sender; ShuffleReceiver.ANY
  private final Batch batch;
  private boolean found; // the batch stands on a row

  /** {@code from}: the sender whose objects it receives, or {@link ShuffleReceiver#ANY}. */
  ObjectReceiver(ShuffleReceiver receiver, RowCodec<T> codec, int from) {
    this.receiver = receiver;
    this.codec = codec;
    this.from = from;
    batch = receiver.newBatch();
  }

  /**
   * Steps to the next object, waiting for it.
   *
   * @return DONE: {@link #get} makes it; else as {@link ShuffleReceiver#receive}
   */
  @CheckReturnValue
  public Outcome next() throws InterruptedException {
    return next(Wait.FOREVER);
  }

  /**
   * Steps to the next object, waiting for it as long as {@code wait} says: WOULD_WAIT or DEADLINE
   * if nothing has come by then.
   */
  @CheckReturnValue
  public <X extends Exception> Outcome next(Wait<X> wait) throws X {
    return hasNext() ? Outcome.DONE : first(receiver.receive(batch, from, wait));
  }

  /**
   * Waits for a batch and hands its objects to {@code consumer}, one after the other; this is the
   * fastest way to receive. When the consumer has had all of them, the batch is released. The
   * consumer must not receive with this receiver. What it throws is thrown here, and the next call
   * continues with the object after the one that it was given.
   *
   * @return DONE: there were some; else as {@link ShuffleReceiver#receive}
   */
  @CheckReturnValue
  public Outcome drain(Consumer<? super T> consumer) throws InterruptedException {
    return drain(consumer, Wait.FOREVER);
  }

  /**
   * Waits for a batch as long as {@code wait} says, and hands its objects to {@code consumer} as
   * {@link #drain(Consumer)} does: WOULD_WAIT or DEADLINE if nothing has come by then.
   */
  @CheckReturnValue
  public <X extends Exception> Outcome drain(Consumer<? super T> consumer, Wait<X> wait) throws X {
    Outcome received = nextBatch(wait);
    if (received == Outcome.DONE) {
      drainBatch(consumer);
    }
    return received;
  }

  /** Takes the next batch for {@link #drainBatch}, or keeps the one of which rows are left. */
  <X extends Exception> Outcome nextBatch(Wait<X> wait) throws X {
    found = false;
    return batch.rowsLeft() > 0 ? Outcome.DONE : receiver.receive(batch, from, wait);
  }

  void drainBatch(Consumer<? super T> consumer) {
    int width = codec.rowBytes();
    if (width == 0 || width != batch.rowBytes()) {
      while (batch.nextRow()) {
        consumer.accept(read());
      }
      batch.release();
      return;
    }
    int at = batch.nextOffset();
    int left = batch.rowsLeft();
    try {
      int begin = at; // a row that cannot be read is skipped
      at += width;
      left--;
      consumer.accept(codec.read(batch, begin, width));
      // With the first object the compiler has learned the class of the consumer. The loop need not
      // check it again, so an object that the consumer only looks at need not be allocated.
      while (left > 0) {
        begin = at;
        at += width;
        left--;
        consumer.accept(codec.read(batch, begin, width));
      }
    } finally {
      batch.standBefore(at, left);
    }
    batch.release();
  }

  /**
   * The object that the last {@link #next} has found; null if it found none. It is deserialised
   * again by each call.
   *
   * @throws FaroException what the codec throws, {@link Code#CLOSED} if the shuffle was closed
   *     meanwhile
   */
  public T get() {
    return found ? read() : null;
  }

  /** The worker that sent it, by its index in {@link ShuffleSpec#senders}. */
  public int sender() {
    return batch.sender();
  }

  /**
   * All objects that are still to come, until every sender has finished; waits for them as
   * {@link #next}. All iterators of a receiver share it: only one of them sees each object.
   *
   * <p>In addition to what {@link #next} throws, its methods throw {@link Code#HOLDING} if the
   * worker holds other batches, and {@link Code#CANCELLED}, with the {@link InterruptedException}
   * as cause, if the thread is interrupted while it waits. The thread then stays interrupted, and
   * the iterator continues when it is called again.
   */
  @Override
  public Iterator<T> iterator() {
    return new OutcomeIterator<>(this::next, this::get);
  }

  /** Copies what it holds, so that the worker may wait. */
  void detach() {
    batch.detach();
  }

  /** The batch that it reads from; a test puts its own bytes in there. */
  Batch frameForTest() {
    return batch;
  }

  private Outcome first(Outcome received) {
    if (received == Outcome.DONE) {
      hasNext();
    }
    return received;
  }

  private boolean hasNext() {
    found = false;
    found = batch.nextRow();
    return found;
  }

  private T read() {
    int length = batch.rowLength();
    if (codec.rowBytes() != 0 && codec.rowBytes() != length) {
      throw new FaroException(
          Code.INVALID_ARGUMENT, "a row of " + length + " bytes, of the codec " + codec.rowBytes());
    }
    return codec.read(batch, batch.rowOffset(), length);
  }

  @Override
  public String toString() {
    return "objects of the " + receiver + ", by " + codec.format();
  }
}
