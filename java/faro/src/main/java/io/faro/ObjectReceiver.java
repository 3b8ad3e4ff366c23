package io.faro;

import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.function.Consumer;

/**
 * Receives objects by a codec, one at a time.
 *
 * <pre>{@code
 * for (String word : shuffle.receiver(RowCodecs.STRING)) {
 *   count(word);
 * }
 * }</pre>
 *
 * <p>It holds the frame that it reads from: while objects of it are left, a send of the same worker
 * that finds no room goes to the outgoing overflow. Threads: those of the worker.
 *
 * @param <T> the type of the objects
 */
public final class ObjectReceiver<T> implements Iterable<T> {
  private final Shuffle shuffle;
  private final RowCodec<T> codec;
  private final Frame frame;
  private boolean found; // the frame stands on a row
  private T handedOver; // if that row is a mark. Of other rows none is kept: that costs the collector's barrier

  ObjectReceiver(Shuffle shuffle, RowCodec<T> codec) {
    this.shuffle = shuffle;
    this.codec = codec;
    frame = shuffle.newFrame();
  }

  /** DONE: {@link #get} makes the next object; else as {@link Shuffle#tryPoll}. */
  public Outcome tryNext() {
    return hasNext() ? Outcome.DONE : first(shuffle.tryPoll(frame));
  }

  /** The same, waiting for rows: as {@link Shuffle#take}. */
  public Outcome next() throws InterruptedException {
    return hasNext() ? Outcome.DONE : first(shuffle.take(frame));
  }

  /**
   * Hands the objects that have come in one frame to {@code consumer}, one after the other: the fastest way
   * to receive. When it has had all of them the frame is released. It must not receive with this receiver; what
   * it throws is thrown here, and the objects after the one that it was given come the next time.
   *
   * @return DONE: there were some; else as {@link Shuffle#tryPoll}
   */
  public Outcome tryDrain(Consumer<? super T> consumer) {
    found = false;
    Outcome polled = frame.rowsLeft() > 0 ? Outcome.DONE : shuffle.tryPoll(frame);
    if (polled == Outcome.DONE) {
      drainFrame(consumer);
    }
    return polled;
  }

  /** The same, waiting for objects: as {@link Shuffle#take}. */
  public Outcome drain(Consumer<? super T> consumer) throws InterruptedException {
    found = false;
    Outcome polled = frame.rowsLeft() > 0 ? Outcome.DONE : shuffle.take(frame);
    if (polled == Outcome.DONE) {
      drainFrame(consumer);
    }
    return polled;
  }

  private void drainFrame(Consumer<? super T> consumer) {
    int width = codec.rowBytes();
    if (width == 0 || width != frame.rowBytes()) {
      while (frame.step()) {
        consumer.accept(frame.mark() < 0 ? takeHandedOver() : read());
      }
      frame.release();
      return;
    }
    int at = frame.nextOffset();
    int left = frame.rowsLeft();
    try {
      int begin = at; // a row that cannot be read is passed over
      at += width;
      left--;
      consumer.accept(codec.read(frame, begin, width));
      // By the first one the compiler has learned the class of the consumer. The loop asks for it no more, so that an
      // object that the consumer only looks at need not be made.
      while (left > 0) {
        begin = at;
        at += width;
        left--;
        consumer.accept(codec.read(frame, begin, width));
      }
    } finally {
      frame.standBefore(at, left);
    }
    frame.release();
  }

  /**
   * The object that the last {@link #next} or {@link #tryNext} has found; null if they found none. One that
   * came as bytes is deserialised anew by each call.
   *
   * @throws FaroException what the codec throws, {@link Code#CLOSED} if the shuffle was closed meanwhile
   */
  public T get() {
    if (!found) {
      return null;
    }
    return frame.mark() < 0 ? handedOver : read();
  }

  /** Number of the worker that sent it. */
  public int sender() {
    return frame.sender();
  }

  /**
   * All objects that are still to come, until every sender has finished; waits for them as {@link #next}.
   * Iterators of one receiver share it: each object is seen by one of them.
   *
   * <p>Its methods throw, beside what {@link #next} throws: {@link Code#HOLDING} if the worker holds other
   * frames, and {@link Code#CANCELLED}, with the {@link InterruptedException} as cause, if the thread is
   * interrupted while it waits; the thread then stays interrupted, and the iterator goes on when asked again.
   */
  @Override
  public Iterator<T> iterator() {
    return new Iterator<>() {
      private Outcome found = Outcome.WOULD_WAIT; // not looked yet

      @Override
      public boolean hasNext() {
        if (found == Outcome.WOULD_WAIT) {
          found = nextOrThrow();
        }
        return found == Outcome.DONE;
      }

      @Override
      public T next() {
        if (!hasNext()) {
          throw new NoSuchElementException("the end of the stream");
        }
        found = Outcome.WOULD_WAIT;
        return get();
      }
    };
  }

  /** What it reads from: a test puts bytes of its own in there. */
  Frame frameForTest() {
    return frame;
  }

  private Outcome nextOrThrow() {
    try {
      Outcome outcome = next();
      if (outcome == Outcome.HOLDING) {
        throw new FaroException(Code.HOLDING, "the worker holds other frames: release or detach them first");
      }
      return outcome;
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new FaroException(Code.CANCELLED, interrupted.getMessage(), interrupted);
    }
  }

  private Outcome first(Outcome polled) {
    if (polled == Outcome.DONE) {
      hasNext();
    }
    return polled;
  }

  private boolean hasNext() {
    found = false;
    if (!frame.step()) {
      return false;
    }
    if (frame.mark() < 0) {
      handedOver = takeHandedOver();
    }
    found = true;
    return true;
  }

  private T read() {
    int length = frame.rowLength();
    if (codec.rowBytes() != 0 && codec.rowBytes() != length) {
      throw new FaroException(
          Code.INVALID_ARGUMENT, "a row of " + length + " bytes, of the codec " + codec.rowBytes());
    }
    return codec.read(frame, frame.rowOffset(), length);
  }

  // By whoever has sent it with a codec for the same type.
  @SuppressWarnings("unchecked")
  private T takeHandedOver() {
    return (T) shuffle.localLanes().from(frame.sender()).take(frame.mark());
  }
}
