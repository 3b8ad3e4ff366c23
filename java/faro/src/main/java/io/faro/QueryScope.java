package io.faro;

import java.util.Objects;

/**
 * A worker's part in a query, which ends on every path out of a block: by {@link #end} where all
 * went well, by {@link #fail} where the part knows why it cannot go on; and by {@link #close} on
 * every other path, which fails the query on all participants.
 *
 * <pre>{@code
 * try (QueryScope part = new QueryScope(worker, query)) {
 *   try (Shuffle shuffle = worker.openShuffle(spec)) {
 *     if (…) return; // fails the query: "worker 3 failed: it has left the query before its end"
 *     …
 *   }
 *   part.end();
 * }
 * }</pre>
 *
 * <p>What a function of {@link Worker#exchange} throws is told to all participants before it leaves
 * that call. Of another exception {@link #close} cannot know: catch it within the block, and give
 * it to {@link #fail}.
 *
 * <p>Threads: those of the worker.
 */
public final class QueryScope implements AutoCloseable {
  private final Worker worker;
  private final QueryId query;
  private boolean hasEnded;
  private FaroException why; // it has failed; null: it has not, or that is not known

  /** The part of this worker; nothing happens yet. */
  public QueryScope(Worker worker, QueryId query) {
    this.worker = Objects.requireNonNull(worker, "worker");
    this.query = Objects.requireNonNull(query, "query");
  }

  /**
   * This worker's part is over; its shuffles of the query must be closed. As
   * {@link Worker#endQuery(QueryId)}; after its end it does nothing.
   *
   * @throws FaroException with the first cause, if the query failed
   * @throws InterruptedException if the thread is interrupted meanwhile; call again
   */
  public void end() throws InterruptedException {
    if (end(Wait.FOREVER) == Outcome.HOLDING) {
      throw worker.parts().holdsBatches();
    }
  }

  /**
   * This worker's part is over, as {@link #end()} says, waiting as long as {@code wait} says: as
   * {@link Worker#endQuery(QueryId, Wait)}. It is to be repeated after WOULD_WAIT, DEADLINE and
   * HOLDING.
   */
  @CheckReturnValue
  public <X extends Exception> Outcome end(Wait<X> wait) throws X {
    Objects.requireNonNull(wait, "wait");
    if (hasEnded) {
      return Outcome.DONE;
    }
    try {
      Outcome outcome = worker.endQuery(query, wait);
      hasEnded = outcome == Outcome.DONE;
      return outcome;
    } catch (FaroException failed) {
      if (failed.category() != Category.OPERATION) {
        hasEnded = true;
        why = failed;
      }
      throw failed;
    }
  }

  /**
   * This worker's part has failed, as {@link Worker#endQuery(QueryId, Throwable)} tells all
   * participants.
   *
   * @return why the query has failed; null if the part had ended well before
   * @throws InterruptedException if the thread is interrupted meanwhile; call again
   */
  public FaroException fail(Throwable failure) throws InterruptedException {
    return fail(failure, Wait.FOREVER);
  }

  /**
   * This worker's part has failed, as {@link #fail(Throwable)} tells, waiting as long as
   * {@code wait} says: null if the outcome is not known by then; call it again.
   */
  public <X extends Exception> FaroException fail(Throwable failure, Wait<X> wait) throws X {
    Objects.requireNonNull(failure, "failure");
    Objects.requireNonNull(wait, "wait");
    if (!hasEnded) {
      why = worker.endQuery(query, failure, wait);
      hasEnded = why != null;
    }
    return why;
  }

  /**
   * Fails the query, unless this worker's part has ended. Never blocks.
   *
   * @throws FaroException {@link Code#WRONG_STATE} if another thread owns the worker
   */
  @Override
  public void close() {
    if (!hasEnded) {
      worker.parts().leave(query);
      hasEnded = true;
    }
  }

  @Override
  public String toString() {
    return "part of " + worker + " in query " + query;
  }
}
