package io.faro;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.function.IntFunction;

/** A worker's parts in queries: how they end. Threads: the worker's. */
final class QueryParts {
  private static final int WOULD_WAIT = Outcome.WOULD_WAIT.number();
  private static final int HOLDING = Outcome.HOLDING.number();

  private final Worker worker;
  private final long session;
  private final int localIndex;
  private final List<Shuffle> open; // all of the worker
  private final List<Aggregation> aggregations; // that are open
  private final Parking parking;
  private final ReadyWatch readyWatch;

  // Why the parts failed that have ended by an exception in an exchange, until it is told.
  private final Map<QueryId, FaroException> failed = new HashMap<>();

  QueryParts(
      Worker worker,
      long session,
      int localIndex,
      List<Shuffle> open,
      List<Aggregation> aggregations,
      Parking parking,
      ReadyWatch readyWatch) {
    this.worker = worker;
    this.session = session;
    this.localIndex = localIndex;
    this.open = open;
    this.aggregations = aggregations;
    this.parking = parking;
    this.readyWatch = readyWatch;
  }

  /** Fails the query by what a function of an exchange has thrown, which ends this part of it. */
  void fail(QueryId query, Throwable thrown) {
    try {
      int result = end(query, PartFailure.of(thrown), Wait.NONE);
      FaroException why = result < 0 ? FaroException.of(result) : null;
      if (why != null && why.category() != Category.OPERATION) {
        failed.put(query, why);
      }
    } catch (FaroException problem) {
      thrown.addSuppressed(problem);
    }
  }

  /** Fails the query, as this part of it was left; unless it has ended. */
  void leave(QueryId query) {
    if (failureOf(query) == null) {
      FaroException left =
          new FaroException(Code.QUERY_FAILED, "it has left the query before its end");
      end(query, PartFailure.of(left), Wait.NONE);
    }
  }

  /** Why this part has failed, if it has ended by an exception in an exchange; told once. */
  FaroException failureOf(QueryId query) {
    Objects.requireNonNull(query, "query");
    worker.owner().enter();
    return failed.remove(query);
  }

  /** Throws why this part has failed, if it has ended by an exception in an exchange. */
  void throwFailureOf(QueryId query) {
    FaroException why = failureOf(query);
    if (why != null) {
      throw why;
    }
  }

  /** Why a query has failed whose part here ended with a failure. */
  FaroException whyFailed(QueryId query, int result) {
    if (result >= 0) {
      throw new FaroException(
          Code.WRONG_STATE,
          "worker " + worker.number() + " had ended its part of query " + query + " well before");
    }
    FaroException why = FaroException.of(result);
    if (why.category() == Category.OPERATION) {
      throw why;
    }
    return why;
  }

  /** Ends a part without waiting; {@code answer} makes the stage's value of the result. */
  <T> void endAsync(
      QueryId query, PartFailure failure, CompletableFuture<T> stage, IntFunction<T> answer) {
    Objects.requireNonNull(query, "query");
    worker.call();
    closeAll(query, failure);
    worker.owner().lendTo("ends query " + query + ": wait for the stage of endQueryAsync() first");
    tryEndAsync(query, failure, stage, answer);
  }

  // Runs on the thread that began it, then on the readiness thread.
  private <T> void tryEndAsync(
      QueryId query, PartFailure failure, CompletableFuture<T> stage, IntFunction<T> answer) {
    T value;
    try {
      CompletableFuture<Void> ready = readyWatch.expect(localIndex);
      int result = parking.arm(timeout -> end(query, failure, timeout));
      if (result == WOULD_WAIT) {
        ready.thenRun(() -> tryEndAsync(query, failure, stage, answer));
        return;
      }
      value = answer.apply(ended(result));
    } catch (RuntimeException | Error problem) {
      worker.owner().giveBack();
      stage.completeExceptionally(problem);
      return;
    }
    worker.owner().giveBack();
    stage.complete(value);
  }

  /** What is open of a query whose part here has failed. */
  private void closeAll(QueryId query, PartFailure failure) {
    if (failure == PartFailure.NONE) {
      return;
    }
    for (Aggregation aggregation : List.copyOf(aggregations)) {
      if (aggregation.spec().query().equals(query)) {
        aggregation.close();
      }
    }
    for (Shuffle shuffle : List.copyOf(open)) {
      if (shuffle.spec().query().equals(query)) {
        shuffle.end();
      }
    }
  }

  /** Ends a part. Answers the number of an outcome, or a negative code. */
  <X extends Exception> int end(QueryId query, PartFailure failure, Wait<X> wait) throws X {
    Objects.requireNonNull(query, "query");
    Objects.requireNonNull(wait, "wait");
    worker.call();
    closeAll(query, failure);
    int result = end(query, failure, 0);
    return result == WOULD_WAIT && !wait.isNone()
        ? worker.awaitResult(timeout -> end(query, failure, timeout), wait)
        : result;
  }

  /** Checks the result of a call that did not time out. */
  int ended(int result) {
    if (result == HOLDING) {
      throw holdsBatches();
    }
    return result;
  }

  FaroException holdsBatches() {
    return new FaroException(
        Code.HOLDING, "worker " + worker.number() + " holds batches: release them first");
  }

  private int end(QueryId query, PartFailure failure, long timeout) {
    return Worker.endQuery(
        session,
        localIndex,
        query.counter(),
        query.incarnation(),
        query.issuer(),
        failure.code(),
        failure.text(),
        timeout);
  }
}
