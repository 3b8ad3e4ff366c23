package io.faro;

import java.util.Iterator;
import java.util.NoSuchElementException;

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
  private T object;

  ObjectReceiver(Shuffle shuffle, RowCodec<T> codec) {
    this.shuffle = shuffle;
    this.codec = codec;
    frame = shuffle.newFrame();
  }

  /** DONE: the next object is {@link #get}; else as {@link Shuffle#tryPoll}. */
  public Outcome tryNext() {
    return hasNext() ? Outcome.DONE : first(shuffle.tryPoll(frame));
  }

  /** The same, waiting for rows: as {@link Shuffle#take}. */
  public Outcome next() throws InterruptedException {
    return hasNext() ? Outcome.DONE : first(shuffle.take(frame));
  }

  /** The object that the last {@link #next} or {@link #tryNext} has found. */
  public T get() {
    return object;
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
   * frames, and {@link Code#WRONG_STATE} if the thread is interrupted while it waits; it then stays
   * interrupted, and the iterator goes on when asked again.
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
        return object;
      }
    };
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
      throw new FaroException(Code.WRONG_STATE, interrupted.getMessage(), interrupted);
    }
  }

  private Outcome first(Outcome polled) {
    if (polled == Outcome.DONE) {
      hasNext();
    } else {
      object = null;
    }
    return polled;
  }

  private boolean hasNext() {
    if (!frame.step()) {
      return false;
    }
    object = frame.mark() < 0 ? handedOver() : read();
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
  private T handedOver() {
    return (T) shuffle.localLanes().from(frame.sender()).take(frame.mark());
  }
}
