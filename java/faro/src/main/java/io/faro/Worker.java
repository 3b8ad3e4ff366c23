package io.faro;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.Function;

/**
 * A worker of this node: one thread that runs query plans.
 *
 * <p>Threads: one at a time. The first thread that uses it, or a shuffle of it, owns it until
 * {@link #releaseOwnership} or its end; another thread's calls throw {@link Code#WRONG_STATE}.
 * Virtual threads may own workers: while they wait they hold no carrier.
 *
 * <p>Interrupts: calls that wait end at once when their thread is interrupted, by an
 * {@link InterruptedException} if they have done nothing; then they can be made again. If they were
 * done just then they return, and the thread stays interrupted, which ends its next wait.
 */
public final class Worker {
  /**
   * In place of a time limit: instead of waiting, the native call arms the worker's doorbell and
   * returns WOULD_WAIT.
   */
  static final long ARM = -1;

  /**
   * A native call that waits at most {@code timeout} nanoseconds. With 0 it tries once; for
   * {@link #ARM} see there. It returns what {@link Outcome#of} expects.
   */
  interface Attempt {
    int call(long timeout);
  }

  private final Session parent; // which is in use as long as its workers are
  private final long session;
  private final int localIndex;
  private final int number;
  private final Interruption interruption;
  private final Parking parking;
  private final ReadyWatch readyWatch;

  private final Owner owner;
  private final List<Shuffle> open = new ArrayList<>(); // the owner's
  private final List<Aggregation> aggregations = new ArrayList<>(); // open ones; the owner's
  private final QueryParts parts;
  private Exchange exchange; // under way; null: none is

  Worker(
      Session parent,
      long session,
      int localIndex,
      int number,
      ReadyWatch readyWatch) {
    this.parent = parent;
    this.session = session;
    this.localIndex = localIndex;
    this.number = number;
    owner = new Owner("worker " + number);
    interruption =
        new Interruption(
            "worker " + number,
            () -> interrupt(session, localIndex),
            () -> clearInterrupt(session, localIndex));
    parking = new Parking(this, localIndex, readyWatch);
    this.readyWatch = readyWatch;
    parts = new QueryParts(this, session, localIndex, open, aggregations, parking, readyWatch);
  }

  /** Number of this worker over the whole cluster. */
  public int number() {
    return number;
  }

  /** Whose worker it is. */
  public Session session() {
    return parent;
  }

  /**
   * Opens a shuffle. Never blocks: senders may start before their receivers have opened it. Every
   * worker that the spec names must open the shuffle with the same senders, receivers and row
   * width. If they differ, the query fails with {@link Code#STAGE_MISMATCH}; if a worker ends its
   * part of the query without opening it, with {@link Code#QUERY_UNOPENED}.
   */
  public Shuffle openShuffle(ShuffleSpec spec) {
    Objects.requireNonNull(spec, "spec");
    call();
    QueryId query = spec.query();
    long handle =
        openShuffle(
            session,
            localIndex,
            query.counter(),
            query.incarnation(),
            query.issuer(),
            spec.stage(),
            spec.rowBytes(),
            spec.senders(),
            spec.receivers(),
            Arrays.stream(spec.groups()).flatMapToInt(Arrays::stream).toArray(),
            Arrays.stream(spec.groups()).mapToInt(group -> group.length).toArray(),
            spec.delivery().number());
    return new Shuffle(this, FaroException.checked(handle), spec, open);
  }

  /**
   * Makes an aggregation. Never blocks. Every worker that the spec names makes one of an equal
   * spec, in any order, at any time; one that differs fails the query with
   * {@link Code#STAGE_MISMATCH}.
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} naming the key or the function that its
   *     column cannot have, {@link Code#LIMIT_EXCEEDED} if {@code operator.memory_bytes} has no
   *     reserve left for it, {@link Code#RESOURCE_LIMIT} if this machine has less than that
   */
  public Aggregation openAggregation(AggregationSpec spec) {
    Objects.requireNonNull(spec, "spec");
    call();
    return new Aggregation(this, spec, session, localIndex, aggregations);
  }

  /**
   * Opens a shuffle of objects, as {@link #openShuffle(ShuffleSpec)} opens one of rows. Both sides
   * use the codec of the spec, as by {@link ShuffleSender#objects} and
   * {@link ShuffleReceiver#objects}. If one of these throws, the shuffle is closed before its end
   * (see {@link Shuffle#close}).
   */
  public <T> ObjectShuffle<T> openShuffle(ObjectShuffleSpec<T> spec) {
    Objects.requireNonNull(spec, "spec");
    Shuffle shuffle = openShuffle(spec.spec());
    try {
      return new ObjectShuffle<>(shuffle, spec.codec());
    } catch (RuntimeException failure) {
      shuffle.close();
      throw failure;
    }
  }

  /**
   * Waits until the condition holds. While it waits, the worker does everything that other workers
   * need from it. A thread that makes the condition true must call {@link #wake}. The condition is
   * called repeatedly on this thread and must not block; an exception that it throws is thrown
   * here. Calls of this worker that it makes, with {@link Wait#NONE}, only try: it is this call
   * that takes rows from the network, once for all of them, and then asks again. So a condition
   * must not spin until rows or room come: within it they may never come.
   *
   * @return {@link Outcome#DONE} or {@link Outcome#HOLDING}
   * @throws InterruptedException if the thread is interrupted meanwhile
   */
  @CheckReturnValue
  public Outcome waitUntil(BooleanSupplier condition) throws InterruptedException {
    return waitUntil(condition, Wait.FOREVER);
  }

  /**
   * Waits until the condition holds, as {@link #waitUntil(BooleanSupplier)} does, as long as
   * {@code wait} says: WOULD_WAIT or DEADLINE if it does not hold by then.
   */
  @CheckReturnValue
  public <X extends Exception> Outcome waitUntil(BooleanSupplier condition, Wait<X> wait) throws X {
    return waitTaking(null, condition, wait);
  }

  /**
   * Waits until the condition holds, which takes the rows of shuffles whenever it is called, so
   * that they are not spilled meanwhile. While a virtual thread is parked they may be.
   *
   * @param taken handles of these shuffles, also of some that were closed; null: none
   */
  <X extends Exception> Outcome waitTaking(long[] taken, BooleanSupplier condition, Wait<X> wait)
      throws X {
    Objects.requireNonNull(condition, "condition");
    Objects.requireNonNull(wait, "wait");
    call();
    BooleanSupplier holds = () -> holds(condition);
    Attempt attempt = limit -> waitUntil(session, localIndex, taken, holds, limit);
    if (wait.nanos() == 0 || VirtualThreads.isCurrent()) {
      Outcome outcome = Outcome.of(attempt.call(0));
      return wait.goesOn(outcome) ? await(attempt, wait) : outcome;
    }
    return await(attempt, wait); // looks first, and a turn that finds nothing to do is not free
  }

  /**
   * Waits without blocking, for event-driven engines: returns at once a stage that completes when
   * {@code progress} should be tried again.
   *
   * <p>{@code progress} is one turn of the engine. It tries everything that this worker could do,
   * without waiting, and returns whether it did anything. It is called on this thread, at most a
   * few times: before the doorbell is armed and, if it did nothing, once more afterwards, so that
   * no event is missed. If it did something, the stage is already complete. Otherwise the stage
   * completes when rows, room or a failure arrive, when a thread calls {@link #wake}, when the
   * session is closed, or at the latest after {@code wait.sleep_ms}. An exception that
   * {@code progress} throws is thrown here. It must not spin until rows or room come: this call
   * takes them from the network, once for each turn.
   *
   * <p>One thread of Faro completes the stages of all workers, so do not run dependents on it: use
   * {@code thenRunAsync} with the thread that owns this worker, or one that it is handed over to.
   *
   * @throws FaroException {@link Code#HOLDING} if the worker holds batches,
   *     {@link Code#SESSION_CLOSED}
   */
  public CompletionStage<Void> whenReady(BooleanSupplier progress) {
    Objects.requireNonNull(progress, "progress");
    call();
    return readyWatch.whenReady(localIndex, () -> arm(session, localIndex, () -> holds(progress)));
  }

  /**
   * Sends and receives the rows of a shuffle at the same time, until both are done: the loop of a
   * worker that is a sender and a receiver. Between two calls of {@code produce} it takes what
   * others have sent, and gives it to {@code consume}; so the worker needs no more memory than its
   * rings, and nobody waits for it. {@link ExchangePart} says what the functions do; the one of a
   * side in which the worker takes no part is null. Rows of these shuffles are not spilled at this
   * worker while it waits in here; on a virtual thread they may be.
   *
   * <pre>{@code
   * LongSender sender = shuffle.sender().longs();
   * Outcome outcome = worker.exchange(
   *     shuffle,
   *     any -> {
   *       for (int i = 0; i < 500; i++) {
   *         if (at == rows.length) return Outcome.END_OF_STREAM;
   *         Outcome sent = sender.send(receiverOf(rows[at]), rows[at], Wait.NONE);
   *         if (sent != Outcome.DONE) return sent;
   *         at++;
   *       }
   *       return Outcome.DONE;
   *     },
   *     batch -> use(batch));
   * }</pre>
   *
   * @return END_OF_STREAM: all was sent, finished and received; HOLDING: {@code consume} has
   *     kept a batch, or it would have to wait while some are held. Then the same call goes on
   * @throws FaroException if the query has failed; or the call was refused: {@link
   *     Code#WRONG_STATE} (called by a function of exchange; a function is missing, or is there for
   *     a side in which the worker takes no part), {@link Code#CLOSED}, {@link
   *     Code#INVALID_ARGUMENT}. What a function has thrown is thrown on; this worker's part of the
   *     query has failed then, its shuffles are closed, and {@link #endQuery(QueryId)} tells why
   * @throws InterruptedException if the thread is interrupted meanwhile; the same call goes on
   */
  @CheckReturnValue
  public Outcome exchange(
      Shuffle shuffle,
      Function<? super ShuffleSender, Outcome> produce,
      Consumer<? super Batch> consume)
      throws InterruptedException {
    return exchange(shuffle, produce, consume, Wait.FOREVER);
  }

  /**
   * Sends and receives the rows of a shuffle at the same time, as {@link #exchange(Shuffle,
   * Function, Consumer)} does, as long as {@code wait} says: DEADLINE if that has passed first;
   * with {@link Wait#NONE}, which makes one turn, DONE if something was done, else WOULD_WAIT. Then
   * the same call goes on. A turn may be made within that of {@link #whenReady}.
   */
  @CheckReturnValue
  public <X extends Exception> Outcome exchange(
      Shuffle shuffle,
      Function<? super ShuffleSender, Outcome> produce,
      Consumer<? super Batch> consume,
      Wait<X> wait)
      throws X {
    return exchange(List.of(ExchangePart.of(shuffle, produce, consume)), wait);
  }

  /**
   * Sends and receives objects at the same time, as {@link #exchange(Shuffle, Function, Consumer)}
   * does rows.
   */
  @CheckReturnValue
  public <T> Outcome exchange(
      ObjectShuffle<T> shuffle,
      Function<? super ObjectSender<T>, Outcome> produce,
      Consumer<? super T> consume)
      throws InterruptedException {
    return exchange(shuffle, produce, consume, Wait.FOREVER);
  }

  /**
   * Sends and receives objects at the same time, as {@link #exchange(Shuffle, Function, Consumer,
   * Wait)} does rows.
   */
  @CheckReturnValue
  public <T, X extends Exception> Outcome exchange(
      ObjectShuffle<T> shuffle,
      Function<? super ObjectSender<T>, Outcome> produce,
      Consumer<? super T> consume,
      Wait<X> wait)
      throws X {
    return exchange(List.of(ExchangePart.of(shuffle, produce, consume)), wait);
  }

  /**
   * Sends and receives the rows of several shuffles at the same time, in turns, as {@link
   * #exchange(Shuffle, Function, Consumer)} does of one: for a worker that receives of one and
   * sends to the next, or joins two. It is done when all parts are.
   */
  @CheckReturnValue
  public Outcome exchange(List<ExchangePart> parts) throws InterruptedException {
    return exchange(parts, Wait.FOREVER);
  }

  /**
   * Sends and receives the rows of several shuffles at the same time, as {@link #exchange(List)}
   * does, as long as {@code wait} says; it answers as {@link #exchange(Shuffle, Function, Consumer,
   * Wait)}.
   */
  @CheckReturnValue
  public <X extends Exception> Outcome exchange(List<ExchangePart> parts, Wait<X> wait) throws X {
    List<ExchangePart> all = Nulls.none(parts, "parts");
    Objects.requireNonNull(wait, "wait");
    call();
    if (exchange != null) {
      throw new FaroException(
          Code.WRONG_STATE,
          "worker " + number + ": exchange is called by a function of exchange; name all shuffles "
              + "in one call");
    }
    exchange = new Exchange(this, all);
    try {
      return exchange.run(wait);
    } finally {
      exchange = null;
    }
  }

  /**
   * Wakes this worker if it is asleep in a wait, so that it checks again. Threads: any. Never
   * blocks.
   */
  public void wake() {
    wake(session, localIndex);
  }

  /**
   * Ends this worker's part in a query; its shuffles of that query must be closed. Waits for the
   * outcome, which the issuer decides when every participating worker has ended its part. A worker
   * whose part has failed calls {@link #endQuery(QueryId, Throwable)} instead.
   *
   * <p>If this returns, the query is done on every node that learns the outcome. Only if the
   * issuer's process dies, or is cut off, right after it has decided may some workers have returned
   * while others get {@link Code#PEER_LOST}, which names the issuer: they do not know the outcome.
   *
   * @throws FaroException with the first cause, if the query failed
   * @throws InterruptedException if the thread is interrupted meanwhile; call again
   */
  public void endQuery(QueryId query) throws InterruptedException {
    parts.throwFailureOf(query);
    Outcome.of(parts.ended(parts.end(query, PartFailure.NONE, Wait.FOREVER)));
  }

  /**
   * Ends this worker's part in a query with a failure. The query then fails on every participant
   * with {@link Code#QUERY_FAILED} and this failure's class and message, unless it has failed
   * already: then it keeps its first cause. That this worker has closed shuffles of the query
   * before their end is no cause yet if this call comes within 100 ms and before any other call of
   * the worker (see {@link Shuffle#close}). Shuffles of the query that are still open are closed. A
   * worker that fails before it opens its shuffles must call this method, because the other workers
   * wait for its rows.
   *
   * <pre>{@code
   * try {
   *   runPart(worker, query); // opens and closes its shuffles
   * } catch (Throwable failure) {
   *   worker.endQuery(query, failure);
   *   throw failure;
   * }
   * worker.endQuery(query);
   * }</pre>
   *
   * @return why the query has failed, as every participant is told; this failure is not thrown
   * @throws FaroException if this worker's part could not end, for instance
   *     {@link Code#WRONG_STATE} if another thread owns the worker
   * @throws InterruptedException if the thread is interrupted meanwhile; call again
   */
  public FaroException endQuery(QueryId query, Throwable failure) throws InterruptedException {
    return endQuery(query, failure, Wait.FOREVER);
  }

  /**
   * Ends this worker's part in a query with a failure, as {@link #endQuery(QueryId, Throwable)}
   * does, waiting as long as {@code wait} says: null if the outcome is not known by then; call it
   * again.
   */
  public <X extends Exception> FaroException endQuery(
      QueryId query, Throwable failure, Wait<X> wait) throws X {
    PartFailure told = PartFailure.of(failure);
    FaroException known = parts.failureOf(query);
    if (known != null) {
      return known;
    }
    int result = parts.end(query, told, wait);
    return Outcome.isOpen(result) ? null : parts.whyFailed(query, parts.ended(result));
  }

  /**
   * Ends this worker's part in a query, as {@link #endQuery(QueryId)} does, waiting as long as
   * {@code wait} says: WOULD_WAIT or DEADLINE if the outcome is not known by then. Call it again
   * until it is, for instance in each turn of {@link #whenReady}. Other queries of this worker
   * continue meanwhile.
   *
   * @return DONE, WOULD_WAIT, DEADLINE or HOLDING
   * @throws FaroException with the first cause, if the query failed
   */
  @CheckReturnValue
  public <X extends Exception> Outcome endQuery(QueryId query, Wait<X> wait) throws X {
    Objects.requireNonNull(wait, "wait");
    parts.throwFailureOf(query);
    return Outcome.of(parts.end(query, PartFailure.NONE, wait));
  }

  /**
   * Ends this worker's part in a query, as {@link #endQuery(QueryId)} does, without waiting: the
   * stage completes when the outcome is known, exceptionally if the query failed. Until then every
   * other use of the worker throws {@link Code#WRONG_STATE}. Afterwards no thread owns the worker,
   * as after {@link #releaseOwnership}. An engine that runs several queries on one worker should
   * use {@link #endQuery(QueryId, Wait)}.
   *
   * <p>A thread of Faro completes the stage, so do not run dependents on it: use
   * {@code thenRunAsync}.
   */
  public CompletionStage<Void> endQueryAsync(QueryId query) {
    FaroException known = parts.failureOf(query);
    if (known != null) {
      owner.releaseOwnership();
      return CompletableFuture.failedFuture(known);
    }
    CompletableFuture<Void> stage = new CompletableFuture<>();
    parts.endAsync(query, PartFailure.NONE, stage, result -> {
      Outcome.of(result);
      return null;
    });
    return stage;
  }

  /**
   * Ends this worker's part in a query with a failure, as {@link #endQuery(QueryId, Throwable)}
   * does, but without waiting, like {@link #endQueryAsync(QueryId)}. The stage completes with the
   * query's failure.
   */
  public CompletionStage<FaroException> endQueryAsync(QueryId query, Throwable failure) {
    PartFailure told = PartFailure.of(failure);
    FaroException known = parts.failureOf(query);
    if (known != null) {
      owner.releaseOwnership();
      return CompletableFuture.completedFuture(known);
    }
    CompletableFuture<FaroException> stage = new CompletableFuture<>();
    parts.endAsync(query, told, stage, result -> parts.whyFailed(query, result));
    return stage;
  }

  /** Releases the calling thread's ownership. The next thread that uses the worker takes it. */
  public void releaseOwnership() {
    owner.releaseOwnership();
  }

  QueryParts parts() {
    return parts;
  }

  Owner owner() {
    return owner;
  }

  /** Before each native call of the worker. */
  void call() {
    owner.enter();
    owner.nextEpoch();
  }

  /** A condition as native code calls it. */
  private boolean holds(BooleanSupplier condition) {
    owner.nextEpoch();
    try {
      return condition.getAsBoolean();
    } finally {
      owner.nextEpoch();
    }
  }

  /** Whether a call that has answered this without waiting has to wait now. */
  boolean goesOn(Outcome outcome, Wait<?> wait) {
    if (outcome == Outcome.HOLDING && !wait.isNone() && exchange != null) {
      exchange.checkMayWait();
    }
    return wait.goesOn(outcome);
  }

  /**
   * Lets a native call wait; it tries once before it does. Not for {@link Wait#NONE}.
   *
   * @throws X if the thread is interrupted before anything was done
   */
  <X extends Exception> Outcome await(Attempt attempt, Wait<X> wait) throws X {
    return Outcome.of(awaitResult(attempt, wait));
  }

  <X extends Exception> int awaitResult(Attempt attempt, Wait<X> wait) throws X {
    if (wait.nanos() == 0) {
      return Outcome.DEADLINE.number();
    }
    if (exchange != null) {
      exchange.checkMayWait();
    }
    try {
      return VirtualThreads.isCurrent()
          ? parking.await(attempt, wait.nanos())
          : awaitInCall(attempt, wait.nanos());
    } catch (InterruptedException interrupted) {
      throw wait.interrupted(interrupted);
    }
  }

  private int awaitInCall(Attempt attempt, long nanos) throws InterruptedException {
    // If the call throws, that is told, and the thread stays interrupted.
    int result = Outcome.DONE.number();
    interruption.begin();
    try {
      result = attempt.call(nanos);
    } finally {
      interruption.end(result);
    }
    return result;
  }

  private static native long openShuffle(
      long session,
      int worker,
      long counter,
      long incarnation,
      int issuer,
      int stage,
      int rowBytes,
      int[] senders,
      int[] receivers,
      int[] groupMembers,
      int[] groupSizes,
      int delivery);

  private static native int waitUntil(
      long session, int worker, long[] taken, BooleanSupplier condition, long timeout);

  private static native int arm(long session, int worker, BooleanSupplier progress);

  /** Called by {@link QueryParts}. */
  static native int endQuery(
      long session,
      int worker,
      long counter,
      long incarnation,
      int issuer,
      int failure,
      byte[] text,
      long timeout);

  private static native void wake(long session, int worker);

  private static native void interrupt(long session, int worker);

  private static native void clearInterrupt(long session, int worker);

  @Override
  public String toString() {
    return "worker " + number + " of node " + parent.node();
  }
}
