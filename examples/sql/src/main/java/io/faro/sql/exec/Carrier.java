package io.faro.sql.exec;

import io.faro.ObjectShuffleSpec;
import io.faro.QueryId;
import io.faro.Session;
import io.faro.Worker;
import java.util.List;

/**
 * What carries the rows of exchanges from worker to worker: opened once per process, used by all queries. It is
 * {@link FaroCarrier}, unless somebody wants to compare. That a query has failed or ended is told by the session,
 * whatever carries its rows.
 *
 * <p>Threads: {@link #open} for different workers at the same time.
 */
public interface Carrier extends AutoCloseable {
  /**
   * Opens one worker's ends of the shuffles of a query. Never blocks.
   *
   * @param stages the shuffle of each exchange, in the order of their stages
   */
  Shuffles open(Worker worker, QueryId query, List<ObjectShuffleSpec<Object[]>> stages);

  /** Ends it; not while a query runs, unless the session was closed. */
  @Override
  void close();

  /** Makes the carrier of a node whose session is open. */
  interface Opener {
    /** Returns when all nodes can be reached; blocks for a limited time. */
    Carrier open(Session session);
  }
}
