package io.faro.sql.exec;

import io.faro.Category;
import io.faro.FaroException;
import io.faro.Session;
import io.faro.SessionConfig;
import io.faro.Worker;
import io.faro.sql.SqlException;
import io.faro.sql.plan.Plan;
import io.faro.sql.plan.Planner;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/**
 * One node of the engine: the session that all its queries use, and a thread for each worker.
 *
 * <p>Threads: one query at a time, {@link #cancel} from any thread.
 */
public final class Engine implements AutoCloseable {
  private static final int END_LIMIT_S = 2; // of workers when the session was closed

  private final Session session;
  private final Planner planner;
  private final ExecutorService threads;
  private final Carrier carrier;
  private final List<Thread> workerThreads = new CopyOnWriteArrayList<>();

  private static Session join(SessionConfig config) {
    try {
      return Session.open(config);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted while the cluster was connecting", interrupted);
    }
  }

  /**
   * Joins the cluster, with this carrier of rows; returns when it is complete. {@code planner}: makes the same plans on
   * all nodes.
   */
  public Engine(SessionConfig config, Carrier.Opener carrier, Planner planner) {
    this.planner = planner;
    session = join(config);
    try {
      this.carrier = carrier.open(session);
    } catch (RuntimeException e) {
      session.close();
      throw e;
    }
    threads =
        Executors.newFixedThreadPool(
            session.workers().size(),
            run -> {
              Thread thread = new Thread(run, "worker " + workerThreads.size());
              workerThreads.add(thread);
              return thread;
            });
  }

  /**
   * Plans a query.
   *
   * @throws SqlException if that cannot be done
   */
  public Plan plan(String sql) {
    return planner.plan(sql);
  }

  /** A new query, on node 0; all nodes then have to {@link #run} it. */
  public Query begin(String sql) {
    return new Query(session.beginQuery(), System.currentTimeMillis(), sql);
  }

  /**
   * Runs a query on the workers of this node; returns when it has ended on all nodes.
   *
   * @return the rows of the result on node 0, none elsewhere
   * @throws FaroException with the first cause, if the query failed anywhere
   */
  public List<Object[]> run(Query query, Plan plan) {
    List<Future<List<Object[]>>> running = new ArrayList<>();
    for (Worker worker : session.workers()) {
      running.add(threads.submit(() -> run(query, plan, worker)));
    }
    List<Object[]> rows = new ArrayList<>();
    RuntimeException failure = null;
    for (Future<List<Object[]>> worker : running) {
      try {
        rows.addAll(worker.get());
      } catch (ExecutionException e) {
        failure = e.getCause() instanceof RuntimeException cause ? cause : new IllegalStateException(e);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new IllegalStateException("interrupted", e);
      }
    }
    if (failure != null) {
      throw failure;
    }
    return rows;
  }

  private List<Object[]> run(Query query, Plan plan, Worker worker) throws InterruptedException {
    try {
      List<Object[]> rows = List.of();
      try (WorkerContext context = new WorkerContext(carrier, worker, session.workerCount(), query, plan)) {
        rows = run(query, plan, context, worker);
      }
      worker.endQuery(query.id()); // throws if the query failed, here or elsewhere
      return worker.number() == 0 ? rows : List.of();
    } finally {
      worker.releaseOwnership();
    }
  }

  /** No rows if it fails: what this worker failed by is told to all others before its shuffles are closed. */
  private List<Object[]> run(Query query, Plan plan, WorkerContext context, Worker worker) {
    try {
      return plan.run(context);
    } catch (Throwable failure) { // an OutOfMemoryError, too, is the end of this query and not of the node
      if (!tellsOfAnEnd(failure)) {
        cancel(query, "worker " + worker.number() + ": " + failure);
      }
      return List.of();
    }
  }

  /** Whether Faro has thrown it because the query, or the session, has ended: all nodes know that already. */
  private static boolean tellsOfAnEnd(Throwable failure) {
    return failure instanceof FaroException e
        && e.category() != Category.OPERATION
        && e.category() != Category.PROCESS;
  }

  /** Those that run queries, as many as there are workers once there was a query; to measure them. */
  public List<Thread> workerThreads() {
    return workerThreads;
  }

  /** Fails a query on all nodes, unless it has ended by then. */
  public void cancel(Query query, String reason) {
    try {
      session.cancelQuery(query.id(), reason);
    } catch (FaroException refused) {
      if (!tellsOfAnEnd(refused)) {
        throw refused;
      }
    }
  }

  /** Leaves the cluster; ends what runs. */
  @Override
  public void close() {
    try {
      session.close();
    } finally {
      threads.shutdown();
      try {
        threads.awaitTermination(END_LIMIT_S, TimeUnit.SECONDS);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
      carrier.close();
    }
  }
}
