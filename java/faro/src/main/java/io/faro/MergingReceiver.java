package io.faro;

import java.util.Comparator;
import java.util.Iterator;

/**
 * Merges the objects of all senders, each of which sends them in order, into one ordered stream.
 * Made by {@link ObjectShuffle#merge} or {@link ShuffleReceiver#merge}.
 *
 * <pre>{@code
 * for (Order order : shuffle.receiver().merge(ORDERS, Comparator.comparing(Order::day))) {
 *   …
 * }
 * }</pre>
 *
 * <p>Equal objects are ordered by the position of their senders in {@link ShuffleSpec#senders};
 * those of one sender stay in the order in which they were sent. The receiver holds at most one
 * batch of each sender. Before the worker waits, it copies these batches to overflow memory, so
 * that it holds no ring while it waits. Each object costs log2(senders) + 1 comparisons.
 *
 * <p>Threads: those of the worker. Valid as long as its shuffle is open; nothing else may receive
 * from it meanwhile. Errors: {@link Code#INVALID_ARGUMENT} if the objects of a sender are not in
 * order, {@link Code#OVERFLOW_EXHAUSTED} if there is no overflow memory: then cancel the query, or
 * close the shuffle, which cancels it.
 *
 * @param <T> the type of the objects
 */
public final class MergingReceiver<T> implements Iterable<T> {
  /** The objects of one sender. */
  private static final class Stream<T> {
    final int worker; // its number
    final ObjectReceiver<T> objects;
    T head; // the next one to be handed out, unless hasEnded
    boolean hasHead; // whether there ever was one
    boolean hasEnded;

    Stream(int worker, ObjectReceiver<T> objects) {
      this.worker = worker;
      this.objects = objects;
    }
  }

  private final Stream<T>[] streams; // by index of the sender
  private final Comparator<? super T> order;
  // A loser tree: the loser of each match, with the overall winner in [0]. Node n has the children
  // 2n and 2n + 1; nodes from streams.length on are the streams.
  private final int[] losers;
  private int begun; // streams whose first object, or end, has come
  private boolean isTaken; // the winner's object was handed out, so its next one is needed
  private boolean found; // the last call has found one
  private long begin; // when the call has begun to wait; 0: not yet

  @SuppressWarnings({"unchecked", "rawtypes"})
  MergingReceiver(
      ShuffleReceiver receiver, RowCodec<T> codec, int[] senders, Comparator<? super T> order) {
    this.order = order;
    streams = new Stream[senders.length];
    for (int i = 0; i < senders.length; i++) {
      streams[i] = new Stream<>(senders[i], new ObjectReceiver<>(receiver, codec, i));
    }
    losers = new int[streams.length];
  }

  /**
   * Steps to the next object, waiting for it.
   *
   * @return DONE: {@link #get} has it; END_OF_STREAM: every sender has finished, and all objects
   *     were handed out; HOLDING: the worker holds batches other than those of this receiver
   */
  @CheckReturnValue
  public Outcome next() throws InterruptedException {
    return next(Wait.FOREVER);
  }

  /**
   * Steps to the next object, waiting for it as long as {@code wait} says: WOULD_WAIT or DEADLINE
   * if it is not known by then.
   */
  @CheckReturnValue
  public <X extends Exception> Outcome next(Wait<X> wait) throws X {
    found = false;
    begin = 0;
    while (begun < streams.length) {
      Outcome outcome = advance(streams[begun], wait);
      if (outcome != Outcome.DONE) {
        return outcome;
      }
      if (++begun == streams.length) {
        losers[0] = streams.length == 1 ? 0 : winner(1);
      }
    }
    if (isTaken) {
      Outcome outcome = advance(streams[losers[0]], wait);
      if (outcome != Outcome.DONE) {
        return outcome;
      }
      isTaken = false;
      replay(losers[0]);
    }
    if (streams[losers[0]].hasEnded) {
      return Outcome.END_OF_STREAM;
    }
    isTaken = true;
    found = true;
    return Outcome.DONE;
  }

  /** The object that the last {@link #next} has found; null if it found none. */
  public T get() {
    return found ? streams[losers[0]].head : null;
  }

  /**
   * The worker that sent it, by its index in {@link ShuffleSpec#senders}; -1 if the last
   * {@link #next} found none.
   */
  public int sender() {
    return found ? losers[0] : -1;
  }

  /**
   * All objects that are still to come; waits for them as {@link #next}. Its methods throw as those
   * of {@link ObjectReceiver#iterator}.
   */
  @Override
  public Iterator<T> iterator() {
    return new OutcomeIterator<>(this::next, this::get);
  }

  // DONE: the stream has its next object, or has ended.
  private <X extends Exception> Outcome advance(Stream<T> stream, Wait<X> wait) throws X {
    Outcome outcome = stream.objects.next(Wait.NONE);
    if (outcome == Outcome.WOULD_WAIT || outcome == Outcome.HOLDING) {
      for (Stream<T> each : streams) {
        each.objects.detach();
      }
      begin = begin == 0 ? System.nanoTime() : begin;
      outcome = stream.objects.next(wait.since(begin));
    }
    if (outcome == Outcome.END_OF_STREAM) {
      stream.hasEnded = true;
      stream.head = null;
      return Outcome.DONE;
    }
    if (outcome == Outcome.DONE) {
      T next = stream.objects.get();
      if (stream.hasHead && order.compare(stream.head, next) > 0) {
        throw new FaroException(
            Code.INVALID_ARGUMENT,
            "the objects of worker " + stream.worker + " are not sent in the order of the merge");
      }
      stream.head = next;
      stream.hasHead = true;
    }
    return outcome;
  }

  // Plays the matches below a node for the first time.
  private int winner(int node) {
    if (node >= streams.length) {
      return node - streams.length;
    }
    int left = winner(2 * node);
    int right = winner(2 * node + 1);
    boolean leftWins = comesBefore(left, right);
    losers[node] = leftWins ? right : left;
    return leftWins ? left : right;
  }

  // Plays the matches of a stream again whose head has changed.
  private void replay(int stream) {
    int winner = stream;
    for (int node = (stream + streams.length) / 2; node > 0; node /= 2) {
      if (comesBefore(losers[node], winner)) {
        int loser = winner;
        winner = losers[node];
        losers[node] = loser;
      }
    }
    losers[0] = winner;
  }

  private boolean comesBefore(int one, int other) {
    if (streams[one].hasEnded || streams[other].hasEnded) {
      return !streams[one].hasEnded;
    }
    int compared = order.compare(streams[one].head, streams[other].head);
    return compared != 0 ? compared < 0 : one < other;
  }

  @Override
  public String toString() {
    return "merged stream of " + streams.length + " senders";
  }
}
