package io.faro;

import java.util.List;
import java.util.Objects;
import java.util.function.ToIntFunction;

/**
 * Sends objects by a codec. The object is written before the call returns and may be used again, but
 * for codecs that declare their objects immutable: these go by reference to workers of the same session.
 *
 * <p>Threads: those of the worker. Valid as long as its shuffle is open.
 *
 * @param <T> the type of the objects
 */
public final class ObjectSender<T> {
  private final Shuffle shuffle;
  private final RowWriter writer;
  private final RowCodec<T> codec;
  private final LocalLanes lanes; // null: everything is serialised
  private final LongSender longs; // null: the rows are not longs
  private Outcome stoppedBy = Outcome.DONE;
  private int refusedReceiver; // of the long that putLongs has found no room for
  private long refusedRow;

  ObjectSender(Shuffle shuffle, RowCodec<T> codec, LocalLanes lanes) {
    this.shuffle = shuffle;
    writer = shuffle.rowWriter();
    this.codec = codec;
    this.lanes = lanes;
    longs = codec == RowCodecs.LONG && shuffle.spec().rowBytes() != 0 ? shuffle.longSender() : null;
  }

  /** Sends one object; WOULD_WAIT if there is no room now. */
  public Outcome trySend(int receiver, T object) {
    if (longs != null) {
      return longs.trySend(receiver, (Long) object);
    }
    ReferenceLane lane = laneFor(receiver, object);
    if (lane != null) {
      Outcome claimed = writer.tryClaim(receiver, 0);
      if (claimed != Outcome.DONE || writer.tryCommitReference(lane, object)) {
        return claimed;
      }
    }
    Outcome claimed = writer.tryClaim(receiver, codec.maxBytes(object));
    if (claimed == Outcome.DONE) {
      writer.commit(codec.write(object, writer));
    }
    return claimed;
  }

  /** The same, waiting for room. */
  public Outcome send(int receiver, T object) throws InterruptedException {
    if (longs != null) {
      return longs.send(receiver, (Long) object);
    }
    ReferenceLane lane = laneFor(receiver, object);
    if (lane != null) {
      Outcome claimed = writer.claim(receiver, 0);
      if (claimed != Outcome.DONE || writer.tryCommitReference(lane, object)) {
        return claimed;
      }
    }
    Outcome claimed = writer.claim(receiver, codec.maxBytes(object));
    if (claimed == Outcome.DONE) {
      writer.commit(codec.write(object, writer));
    }
    return claimed;
  }

  /**
   * Sends objects[from … to-1], each to the receiver that the function answers for it, or as many as there
   * is room for.
   *
   * @return how many were taken; {@link #stoppedBy} says why not all were taken
   */
  public int trySendAll(List<? extends T> objects, int from, int to, ToIntFunction<? super T> receiverOf) {
    Objects.checkFromToIndex(from, to, objects.size());
    stoppedBy = Outcome.DONE;
    for (int i = putLongs(objects, from, to, receiverOf); i < to; i = putLongs(objects, i + 1, to, receiverOf)) {
      if (longs != null) {
        stoppedBy = longs.trySend(refusedReceiver, refusedRow);
      } else {
        T object = objects.get(i);
        stoppedBy = trySend(receiverOf.applyAsInt(object), object);
      }
      if (stoppedBy != Outcome.DONE) {
        return i - from;
      }
    }
    return to - from;
  }

  /**
   * The same, waiting for room: takes fewer than all only if it is stopped by {@link Outcome#STOPPED} or
   * {@link Outcome#HOLDING}.
   *
   * @throws InterruptedException if the thread is interrupted meanwhile; some objects may have been sent
   */
  public int sendAll(List<? extends T> objects, int from, int to, ToIntFunction<? super T> receiverOf)
      throws InterruptedException {
    Objects.checkFromToIndex(from, to, objects.size());
    stoppedBy = Outcome.DONE;
    for (int i = putLongs(objects, from, to, receiverOf); i < to; i = putLongs(objects, i + 1, to, receiverOf)) {
      if (longs != null) {
        stoppedBy = longs.send(refusedReceiver, refusedRow);
      } else {
        T object = objects.get(i);
        stoppedBy = send(receiverOf.applyAsInt(object), object);
      }
      if (stoppedBy != Outcome.DONE) {
        return i - from;
      }
    }
    return to - from;
  }

  /**
   * Puts objects[from … to-1], if they are longs, as long as there is room. Where it has stopped; the row that found no
   * room is in refusedRow then.
   */
  private int putLongs(List<? extends T> objects, int from, int to, ToIntFunction<? super T> receiverOf) {
    if (longs == null || from == to) {
      return from;
    }
    // By the first one the compiler has learned the classes of the list and of the function. The loop asks for them no
    // more, so that a Long that the list makes is used up at once, and need not become an object.
    T object = objects.get(from);
    long row = (Long) object;
    int receiver = receiverOf.applyAsInt(object);
    int at = from;
    while (longs.tryPut(receiver, row)) {
      if (++at == to) {
        return to;
      }
      T next = objects.get(at);
      row = (Long) next;
      receiver = receiverOf.applyAsInt(next);
    }
    refusedReceiver = receiver;
    refusedRow = row;
    return at;
  }

  /** Why the last trySendAll or sendAll took fewer objects than all; DONE if it took all. */
  public Outcome stoppedBy() {
    return stoppedBy;
  }

  /**
   * Sends one object to several receivers, each named once: to all of them or (WOULD_WAIT) to none. It is
   * serialised, once, also if it is immutable.
   */
  public Outcome tryMulticast(int[] receivers, T object) {
    int bytes = writeAside(object);
    return shuffle.tryMulticast(receivers, writer.written(bytes), 0, bytes);
  }

  /** The same, waiting for room. */
  public Outcome multicast(int[] receivers, T object) throws InterruptedException {
    int bytes = writeAside(object);
    return shuffle.multicast(receivers, writer.written(bytes), 0, bytes);
  }

  /**
   * As {@link #tryMulticast}, to all receivers; but an immutable object goes by reference to workers of the same
   * session, unless one receiver has no room at once.
   */
  public Outcome tryBroadcast(T object) {
    int bytes = writeAside(object);
    return committedToAll(bytes, object) ? Outcome.DONE : shuffle.tryBroadcast(writer.written(bytes), 0, bytes);
  }

  /** The same, waiting for room. */
  public Outcome broadcast(T object) throws InterruptedException {
    int bytes = writeAside(object);
    return committedToAll(bytes, object) ? Outcome.DONE : shuffle.broadcast(writer.written(bytes), 0, bytes);
  }

  private boolean committedToAll(int bytes, T object) {
    return writer.tryCommitToAll(bytes, object == null ? null : lanes, object);
  }

  private ReferenceLane laneFor(int receiver, T object) {
    return lanes == null || object == null ? null : lanes.to(receiver);
  }

  private int writeAside(T object) {
    writer.claimAside(codec.maxBytes(object));
    return codec.write(object, writer);
  }
}
