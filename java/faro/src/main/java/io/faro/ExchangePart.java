package io.faro;

import java.util.Objects;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * What {@link Worker#exchange(java.util.List)} does with one shuffle.
 *
 * <p>Its functions are called on the worker's thread, many times, never within each other. They
 * send and receive with {@link Wait#NONE} alone: a call of theirs that would have to wait, and
 * another exchange, throws {@link Code#WRONG_STATE}. What they throw fails the query on every
 * participant, as {@link Worker#endQuery(QueryId, Throwable)} does, and is thrown on. The one of a
 * side in which the worker takes no part, or which has ended, may be null.
 *
 * <p>{@code produce} sends rows, some hundred at a time: between two calls the worker takes what
 * others have sent to it. It answers
 *
 * <ul>
 *   <li>DONE: call it again
 *   <li>WOULD_WAIT or HOLDING: a row found no room, and it keeps that row; or there is nothing to
 *       send yet. It is called again when there is room, when rows came, and after
 *       {@link Worker#wake}
 *   <li>END_OF_STREAM: it has sent its last row. It is not called again, and exchange calls finish
 *   <li>STOPPED: every receiver has stopped; as END_OF_STREAM
 * </ul>
 *
 * <p>{@code consume} takes what has come: batches, or the objects of an {@link ObjectShuffle}. A
 * batch is released when it returns, unless it has called {@link Batch#keep}.
 *
 * <p>Threads: those of the worker. It can be used by many calls, one after the other.
 */
public final class ExchangePart {
  // Between two looks at what there is to send: as many frames as a ring mostly has.
  private static final int BATCHES_AT_ONCE = 16;

  private final Shuffle shuffle;
  private final Supplier<Outcome> produce; // null: none
  private final Intake intake; // null: none
  private boolean hasEnded;

  private ExchangePart(Shuffle shuffle, Supplier<Outcome> produce, Intake intake) {
    this.shuffle = shuffle;
    this.produce = produce;
    this.intake = intake;
  }

  /** A shuffle of rows. Either function may be null. */
  public static ExchangePart of(
      Shuffle shuffle,
      Function<? super ShuffleSender, Outcome> produce,
      Consumer<? super Batch> consume) {
    Objects.requireNonNull(shuffle, "shuffle");
    return new ExchangePart(
        shuffle,
        produce == null ? null : () -> produce.apply(shuffle.sender()),
        consume == null ? null : new BatchIntake(shuffle, consume));
  }

  /** A shuffle of objects. Either function may be null. */
  public static <T> ExchangePart of(
      ObjectShuffle<T> shuffle,
      Function<? super ObjectSender<T>, Outcome> produce,
      Consumer<? super T> consume) {
    Objects.requireNonNull(shuffle, "shuffle");
    return new ExchangePart(
        shuffle.shuffle(),
        produce == null ? null : () -> produce.apply(shuffle.sender()),
        consume == null ? null : new ObjectIntake<>(shuffle, consume));
  }

  /**
   * Whether every sender has finished and {@code consume} has got all rows, as the last exchange
   * with this part has seen: for a part that produces from what another one consumes.
   */
  public boolean hasEnded() {
    return hasEnded;
  }

  Shuffle shuffle() {
    return shuffle;
  }

  /** Checks it before anything is done. */
  void check(Worker worker) {
    shuffle.enter();
    if (shuffle.worker() != worker) {
      throw new FaroException(
          Code.INVALID_ARGUMENT,
          "exchange of " + worker + " has a shuffle of " + shuffle.worker() + ", of stage "
              + shuffle.spec().stage());
    }
    checkFunction("produce", produce != null, "sender", shuffle.isSender(), hasSent());
    checkFunction("consume", intake != null, "receiver", shuffle.isReceiver(), hasReceived());
    hasEnded = hasReceived();
  }

  // That a function is there where the worker has something to do by it, and only there.
  private void checkFunction(
      String name, boolean isThere, String side, boolean takesPart, boolean isOver) {
    if (isThere != takesPart && !(takesPart && isOver)) {
      throw new FaroException(
          Code.WRONG_STATE,
          "worker " + shuffle.worker().number() + (takesPart ? " is a " : " is no ") + side
              + " of stage " + shuffle.spec().stage() + ", for which exchange has "
              + (takesPart ? "no" : "a") + " function `" + name + "`");
    }
  }

  private boolean hasSent() {
    return !shuffle.isSender() || shuffle.sender().hasFinished();
  }

  private boolean hasReceived() {
    return !shuffle.isReceiver() || shuffle.receiver().hasEnded();
  }

  /** Everything was sent, finished and received. */
  boolean isDone() {
    return hasEnded && hasSent();
  }

  /** Whether {@code consume} has kept batches that are still held. */
  boolean holds() {
    return intake != null && shuffle.receiver().holdsBatchOfExchange();
  }

  /** Takes the first batches that have come. Whether there was anything. */
  boolean take(Exchange exchange) {
    for (int taken = 0; taken < BATCHES_AT_ONCE && !hasEnded; taken++) {
      Outcome outcome = intake.next();
      if (outcome == Outcome.END_OF_STREAM) {
        hasEnded = true;
        return true;
      }
      if (outcome != Outcome.DONE) {
        return taken > 0; // WOULD_WAIT, or HOLDING because of batches that were kept
      }
      exchange.enterFunctionOf(this);
      boolean isKept = intake.use();
      exchange.leaveFunction();
      if (isKept) {
        exchange.keeps();
        return true;
      }
    }
    return !hasEnded;
  }

  /** Sends some rows, or finishes. Whether it has done anything. */
  boolean send(Exchange exchange) {
    if (hasSent()) {
      return false;
    }
    ShuffleSender sender = shuffle.sender();
    if (sender.isFinishing()) {
      return sender.finish(Wait.NONE) == Outcome.DONE;
    }
    exchange.enterFunctionOf(this);
    Outcome outcome = produce.get();
    if (outcome == null || outcome == Outcome.DEADLINE) {
      throw new FaroException(
          Code.QUERY_FAILED,
          "its function `produce` answered " + outcome
              + ", and has to answer DONE, WOULD_WAIT or END_OF_STREAM");
    }
    exchange.leaveFunction();
    if (outcome == Outcome.END_OF_STREAM || outcome == Outcome.STOPPED) {
      Outcome later = sender.finish(Wait.NONE); // the next turn looks again
      return later != null;
    }
    return outcome == Outcome.DONE;
  }

  @Override
  public String toString() {
    return "exchange of the " + shuffle;
  }

  /** What others send. */
  private interface Intake {
    /** Takes the next batch; never waits. */
    Outcome next();

    /** Gives it to {@code consume}. Whether that has kept it. */
    boolean use();
  }

  private static final class BatchIntake implements Intake {
    private final Shuffle shuffle;
    private final Consumer<? super Batch> consume;
    private Batch batch;

    BatchIntake(Shuffle shuffle, Consumer<? super Batch> consume) {
      this.shuffle = shuffle;
      this.consume = consume;
    }

    @Override
    public Outcome next() {
      ShuffleReceiver receiver = shuffle.receiver();
      batch = receiver.batchOfExchange();
      return receiver.receive(batch, Wait.NONE);
    }

    @Override
    public boolean use() {
      consume.accept(batch);
      if (!batch.isKept()) {
        batch.release();
      }
      return batch.isHeld();
    }
  }

  private static final class ObjectIntake<T> implements Intake {
    private final ObjectShuffle<T> shuffle;
    private final Consumer<? super T> consume;

    ObjectIntake(ObjectShuffle<T> shuffle, Consumer<? super T> consume) {
      this.shuffle = shuffle;
      this.consume = consume;
    }

    @Override
    public Outcome next() {
      return shuffle.receiver().nextBatch(Wait.NONE);
    }

    @Override
    public boolean use() {
      shuffle.receiver().drainBatch(consume);
      return false;
    }
  }
}
