package io.faro;

/**
 * Sends objects by a codec. The object is written before the call returns and may be used again, but
 * for codecs that declare their objects immutable: these go by reference to workers of the same session.
 *
 * <p>Threads: those of the worker. Valid as long as its shuffle is open.
 *
 * @param <T> the type of the objects
 */
public final class ObjectSender<T> {
  private final RowWriter writer;
  private final RowCodec<T> codec;
  private final LocalLanes lanes; // null: everything is serialised

  ObjectSender(RowWriter writer, RowCodec<T> codec, LocalLanes lanes) {
    this.writer = writer;
    this.codec = codec;
    this.lanes = lanes;
  }

  /** Sends one object; WOULD_WAIT if there is no room now. */
  public Outcome trySend(int receiver, T object) {
    ReferenceLane lane = laneFor(receiver, object);
    if (lane != null) {
      Outcome claimed = writer.tryClaim(receiver, 0);
      if (claimed != Outcome.DONE || writer.tryCommitReference(lane, object)) {
        return claimed;
      }
    }
    return write(writer.tryClaim(receiver, codec.maxBytes(object)), object);
  }

  /** The same, waiting for room. */
  public Outcome send(int receiver, T object) throws InterruptedException {
    ReferenceLane lane = laneFor(receiver, object);
    if (lane != null) {
      Outcome claimed = writer.claim(receiver, 0);
      if (claimed != Outcome.DONE || writer.tryCommitReference(lane, object)) {
        return claimed;
      }
    }
    return write(writer.claim(receiver, codec.maxBytes(object)), object);
  }

  private ReferenceLane laneFor(int receiver, T object) {
    return lanes == null || object == null ? null : lanes.to(receiver);
  }

  private Outcome write(Outcome claimed, T object) {
    if (claimed == Outcome.DONE) {
      writer.commit(codec.write(object, writer));
    }
    return claimed;
  }
}
