package io.faro;

import java.util.Comparator;

/**
 * A shuffle of objects at one worker, opened with the codec of both its sides by {@link
 * Worker#openShuffle(ObjectShuffleSpec)}.
 *
 * <pre>{@code
 * ShuffleSpec spec = ShuffleSpec.repartition(query, 0);
 * try (ObjectShuffle<String> words = worker.openShuffle(spec.withRowsOf(RowCodecs.STRING))) {
 *   Outcome sent = words.sender().send(receiver, "word");
 *   …
 *   for (String word : words.receiver()) count(word);
 * }
 * }</pre>
 *
 * <p>Threads and failures are those of {@link Shuffle}.
 *
 * @param <T> the type of the objects
 */
public final class ObjectShuffle<T> implements AutoCloseable {
  private final Shuffle shuffle;
  private final RowCodec<T> codec;
  private final ObjectSender<T> sender; // null: this worker is no sender
  private final ObjectReceiver<T> receiver; // null: this worker is no receiver

  ObjectShuffle(Shuffle shuffle, RowCodec<T> codec) {
    this.shuffle = shuffle;
    this.codec = codec;
    sender = shuffle.isSender() ? shuffle.sender().objects(codec) : null;
    receiver = shuffle.isReceiver() ? shuffle.receiver().objects(codec) : null;
  }

  /**
   * The shuffle itself: its state, and all other ways to send and receive its rows. Closed with
   * this object.
   */
  public Shuffle shuffle() {
    return shuffle;
  }

  /**
   * The sending side; always the same object.
   *
   * @throws FaroException {@link Code#WRONG_STATE} if this worker is no sender
   */
  public ObjectSender<T> sender() {
    shuffle.sender();
    return sender;
  }

  /**
   * The receiving side; always the same object.
   *
   * @throws FaroException {@link Code#WRONG_STATE} if this worker is no receiver
   */
  public ObjectReceiver<T> receiver() {
    shuffle.receiver();
    return receiver;
  }

  /** In place of {@link #receiver}, merged: {@link ShuffleReceiver#merge}. */
  public MergingReceiver<T> merge(Comparator<? super T> order) {
    return shuffle.receiver().merge(codec, order);
  }

  /** Closes the shuffle: {@link Shuffle#close}. */
  @Override
  public void close() {
    shuffle.close();
  }

  @Override
  public String toString() {
    return shuffle + ", of objects by " + codec.format();
  }
}
