package io.faro;

/**
 * Receives objects by a codec, one at a time.
 *
 * <p>It holds the frame that it reads from: while objects of it are left, a send of the same worker
 * that finds no room goes to the outgoing overflow. Threads: those of the worker.
 *
 * @param <T> the type of the objects
 */
public final class ObjectReceiver<T> {
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
