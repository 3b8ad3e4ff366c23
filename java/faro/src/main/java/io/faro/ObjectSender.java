package io.faro;

import java.util.List;
import java.util.Objects;
import java.util.function.ToIntFunction;

/**
 * Sends objects by a codec. The object is written before the call returns and may be used again.
 *
 * <p>Waiting, answers, threads and errors are those of {@link ShuffleSender}.
 *
 * @param <T> the type of the objects
 */
public final class ObjectSender<T> {
  private final ShuffleSender sender;
  private final RowWriter writer;
  private final RowCodec<T> codec;
  private final LongSender longs; // null: the rows are not longs
  private Outcome stoppedBy = Outcome.DONE;
  private int refusedReceiver; // of the long that putLongs found no room for
  private long refusedRow;

  ObjectSender(ShuffleSender sender, RowCodec<T> codec) {
    this.sender = sender;
    writer = sender.rows();
    this.codec = codec;
    longs = codec == RowCodecs.LONG && sender.spec().rowBytes() != 0 ? sender.longs() : null;
  }

  /** Sends one object. */
  @CheckReturnValue
  public Outcome send(int receiver, T object) throws InterruptedException {
    return send(receiver, object, Wait.FOREVER);
  }

  /** Sends one object, waiting for room as long as {@code wait} says. */
  @CheckReturnValue
  public <X extends Exception> Outcome send(int receiver, T object, Wait<X> wait) throws X {
    if (longs != null) {
      return longs.send(receiver, (Long) object, wait);
    }
    Outcome claimed = writer.claim(receiver, codec.maxBytes(object), wait);
    if (claimed == Outcome.DONE) {
      writer.commit(codec.write(object, writer));
    }
    return claimed;
  }

  /**
   * Sends objects[from … to-1], each to the receiver that the function answers for it.
   *
   * @return how many objects were taken; if fewer than all, {@link #stoppedBy} says why
   * @throws InterruptedException if the thread is interrupted meanwhile; some objects may have been
   *     sent
   */
  @CheckReturnValue
  public int sendAll(
      List<? extends T> objects, int from, int to, ToIntFunction<? super T> receiverOf)
      throws InterruptedException {
    return sendAll(objects, from, to, receiverOf, Wait.FOREVER);
  }

  /**
   * Sends objects[from … to-1], each to the receiver that the function answers for it, waiting
   * for room as long as {@code wait} says, for all objects together. Answers how many objects were
   * taken; if fewer than all, {@link #stoppedBy} says why.
   */
  @CheckReturnValue
  public <X extends Exception> int sendAll(
      List<? extends T> objects,
      int from,
      int to,
      ToIntFunction<? super T> receiverOf,
      Wait<X> wait)
      throws X {
    Objects.requireNonNull(receiverOf, "receiverOf");
    Objects.requireNonNull(wait, "wait");
    Objects.checkFromToIndex(from, to, Objects.requireNonNull(objects, "objects").size());
    stoppedBy = Outcome.DONE;
    long begin = 0; // when it first found no room; 0: not yet
    for (int i = putLongs(objects, from, to, receiverOf);
        i < to;
        i = putLongs(objects, i + 1, to, receiverOf)) {
      T object = longs != null ? null : objects.get(i);
      int receiver = longs != null ? refusedReceiver : receiverOf.applyAsInt(object);
      stoppedBy = sendOne(receiver, object, Wait.NONE);
      if (wait.goesOn(stoppedBy)) {
        begin = begin == 0 ? System.nanoTime() : begin;
        stoppedBy = sendOne(receiver, object, wait.since(begin));
      }
      if (stoppedBy != Outcome.DONE) {
        return i - from;
      }
    }
    return to - from;
  }

  // Sends the object; or the long that putLongs has found no room for.
  private <X extends Exception> Outcome sendOne(int receiver, T object, Wait<X> wait) throws X {
    return longs != null ? longs.send(receiver, refusedRow, wait) : send(receiver, object, wait);
  }

  /**
   * Puts objects[from … to-1], if they are longs, as long as there is room. Returns where it has
   * stopped; refusedRow is then the row that found no room.
   */
  private int putLongs(
      List<? extends T> objects, int from, int to, ToIntFunction<? super T> receiverOf) {
    if (longs == null || from == to) {
      return from;
    }
    // With the first object the compiler has learned the classes of the list and of the function.
    // The loop need not check them again, so a Long that the list makes is used at once and need
    // not be allocated.
    T object = objects.get(from);
    long row = (Long) object;
    int receiver = receiverOf.applyAsInt(object);
    int at = from;
    while (longs.put(receiver, row)) {
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

  /** Why the last {@link #sendAll} took fewer objects than all; DONE if it took all. */
  public Outcome stoppedBy() {
    return stoppedBy;
  }

  /**
   * Sends one object to several receivers, each named once: to all of them or to none. It is
   * serialised once.
   */
  @CheckReturnValue
  public Outcome multicast(int[] receivers, T object) throws InterruptedException {
    return multicast(receivers, object, Wait.FOREVER);
  }

  /**
   * Sends one object to several receivers, as {@link #multicast(int[], Object)} does, waiting for
   * room as long as {@code wait} says.
   */
  @CheckReturnValue
  public <X extends Exception> Outcome multicast(int[] receivers, T object, Wait<X> wait) throws X {
    int bytes = writeAside(object);
    return sender.multicast(receivers, writer.written(bytes), 0, bytes, wait);
  }

  /** Sends one object to all receivers, or to none. It is serialised once. */
  @CheckReturnValue
  public Outcome broadcast(T object) throws InterruptedException {
    return broadcast(object, Wait.FOREVER);
  }

  /**
   * Sends one object to all receivers, as {@link #broadcast(Object)} does, waiting for room as long
   * as {@code wait} says.
   */
  @CheckReturnValue
  public <X extends Exception> Outcome broadcast(T object, Wait<X> wait) throws X {
    int bytes = writeAside(object);
    return writer.tryCommitToAll(bytes)
        ? Outcome.DONE
        : sender.broadcast(writer.written(bytes), 0, bytes, wait);
  }

  /** Says that there are no more objects, as {@link ShuffleSender#finish()} does. */
  @CheckReturnValue
  public Outcome finish() throws InterruptedException {
    return sender.finish();
  }

  /** Says that there are no more objects, waiting as long as {@code wait} says. */
  @CheckReturnValue
  public <X extends Exception> Outcome finish(Wait<X> wait) throws X {
    return sender.finish(wait);
  }

  private int writeAside(T object) {
    writer.claimAside(codec.maxBytes(object));
    return codec.write(object, writer);
  }

  @Override
  public String toString() {
    return "objects by the " + sender + ", by " + codec.format();
  }
}
