package io.faro.sql.cluster;

import io.faro.Category;
import io.faro.FaroException;
import io.faro.SessionConfig;
import io.faro.sockets.HeldAddresses;
import io.faro.sql.SqlException;
import io.faro.sql.exec.Engine;
import io.faro.sql.exec.Query;
import io.faro.sql.plan.Plan;
import io.faro.sql.plan.Planner;
import io.faro.sql.tables.Table;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * A cluster whose node 0 is this process and whose other nodes are processes that it starts. When one of them
 * is lost, all start anew, with a new session, before the next query.
 *
 * <p>Threads: one query at a time, {@link #cancel} from any thread.
 */
public final class ProcessCluster implements AutoCloseable {
  private final ClusterOptions options;
  private final Map<String, Table> tables;
  private final Planner planner;
  private final List<NodeProcess> others = new ArrayList<>();
  private HeldAddresses held; // of the nodes that run
  private Engine engine; // null: the nodes do not run
  private Query running; // null: none. Guarded by this

  public ProcessCluster(ClusterOptions options) {
    this.options = options;
    tables = options.tables();
    planner = options.planner(tables);
    start();
  }

  private void start() {
    int nodes = options.nodes();
    held = Addresses.hold(2 * nodes, options.hosts());
    List<String> addresses = held.all().subList(0, nodes);
    List<String> sockets = held.all().subList(nodes, 2 * nodes);
    for (int node = 1; node < nodes; node++) {
      others.add(
          new NodeProcess(Node.class, ProcessBuilder.Redirect.INHERIT, node, addresses, sockets, options));
    }
    SessionConfig config = options.config(0, addresses);
    engine = new Engine(config, options.carrier(config, sockets), planner);
  }

  /** Process ids of all nodes, by number. */
  public List<Long> pids() {
    List<Long> pids = new ArrayList<>(List.of(ProcessHandle.current().pid()));
    others.forEach(node -> pids.add(node.pid()));
    return pids;
  }

  public Map<String, Table> tables() {
    return tables;
  }

  /**
   * A query's plan.
   *
   * @throws SqlException if it has none
   */
  public Plan plan(String sql) {
    return planner.plan(sql);
  }

  /** Makes sure that all nodes run; true if they had to be started. */
  public boolean ensureWhole() {
    if (engine != null && others.stream().allMatch(NodeProcess::isAlive)) {
      return false;
    }
    close();
    start();
    return true;
  }

  /**
   * Runs a query on all nodes.
   *
   * @throws FaroException with the first cause, if it failed on any of them
   */
  public List<Object[]> run(String sql, Plan plan) {
    Query query = engine.begin(sql);
    setRunning(query);
    try {
      others.forEach(node -> node.run(query));
      return engine.run(query, plan);
    } catch (FaroException e) {
      if (e.category() != Category.QUERY && e.category() != Category.OPERATION) {
        close();
      }
      throw e;
    } finally {
      setRunning(null);
    }
  }

  private synchronized void setRunning(Query query) {
    running = query;
  }

  /** Fails the query that runs; false if there is none. */
  public synchronized boolean cancel(String reason) {
    if (running == null) {
      return false;
    }
    engine.cancel(running, reason);
    return true;
  }

  @Override
  public void close() {
    others.forEach(NodeProcess::close);
    others.clear();
    if (engine != null) {
      engine.close();
      engine = null;
    }
    held.close();
  }
}
