package io.faro;

/**
 * Sends objects by a codec. The object is written before the call returns, and may be used again.
 *
 * <p>Threads: those of the worker. Valid as long as its shuffle is open.
 *
 * @param <T> the type of the objects
 */
public final class ObjectSender<T> {
  private final RowWriter writer;
  private final RowCodec<T> codec;

  ObjectSender(RowWriter writer, RowCodec<T> codec) {
    this.writer = writer;
    this.codec = codec;
  }

  /** Sends one object; WOULD_WAIT if there is no room now. */
  public Outcome trySend(int receiver, T object) {
    return write(writer.tryClaim(receiver, codec.maxBytes(object)), object);
  }

  /** The same, waiting for room. */
  public Outcome send(int receiver, T object) throws InterruptedException {
    return write(writer.claim(receiver, codec.maxBytes(object)), object);
  }

  private Outcome write(Outcome claimed, T object) {
    if (claimed == Outcome.DONE) {
      writer.commit(codec.write(object, writer));
    }
    return claimed;
  }
}
