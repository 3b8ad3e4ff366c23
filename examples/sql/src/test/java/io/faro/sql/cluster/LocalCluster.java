package io.faro.sql.cluster;

import io.faro.SessionConfig;
import io.faro.Setting;
import io.faro.sockets.HeldAddresses;
import io.faro.sql.exec.Engine;
import io.faro.sql.exec.Query;
import io.faro.sql.plan.Operators;
import io.faro.sql.plan.Plan;
import io.faro.sql.plan.Planner;
import io.faro.sql.tables.Table;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

/** All nodes of a cluster in this JVM. Threads: one query at a time. */
public final class LocalCluster implements AutoCloseable {
  private final HeldAddresses held;
  private final Planner planner;
  private final List<Engine> engines = new ArrayList<>();

  /** A query that runs, and what comes of it on each node. */
  record Running(Query query, List<CompletableFuture<List<Object[]>>> nodes) {}

  /** {@code settings}: of every node. */
  LocalCluster(int nodes, int workers, Map<Setting, String> settings, String carrier, Map<String, Table> tables) {
    this(nodes, workers, settings, carrier, Operators.CALCITE, tables);
  }

  LocalCluster(
      int nodes,
      int workers,
      Map<Setting, String> settings,
      String carrier,
      Operators operators,
      Map<String, Table> tables) {
    planner = new Planner(tables, carrier.equals(Carriers.FARO) ? nodes : nodes * workers, operators);
    held = Addresses.hold(2 * nodes, List.of(Addresses.HOST));
    List<String> sockets = held.all().subList(nodes, 2 * nodes);
    List<CompletableFuture<Engine>> opening = new ArrayList<>();
    for (int node = 0; node < nodes; node++) {
      SessionConfig.Builder builder =
          SessionConfig.builder()
              .cluster(node, held.all().subList(0, nodes))
              .workers(workers)
              .set(Setting.LANE_ENDS, "both");
      settings.forEach(builder::set);
      SessionConfig config = builder.build();
      opening.add(inThread(() -> new Engine(config, Carriers.of(carrier, config, sockets), planner)));
    }
    RuntimeException failure = null;
    for (CompletableFuture<Engine> engine : opening) {
      try {
        engines.add(engine.join());
      } catch (RuntimeException e) {
        failure = e;
      }
    }
    if (failure != null) {
      close();
      throw failure;
    }
  }

  /** A query's plan. */
  public Plan plan(String sql) {
    return planner.plan(sql);
  }

  /** Runs a plan of this cluster; the rows of its result. */
  public List<Object[]> run(Plan plan) {
    return start(plan).nodes().stream().map(CompletableFuture::join).toList().get(0);
  }

  /** Begins to. */
  Running start(Plan plan) {
    Query query = engines.get(0).begin("");
    return new Running(query, engines.stream().map(engine -> inThread(() -> engine.run(query, plan))).toList());
  }

  /** Fails a query. */
  void cancel(Running running, String reason) {
    engines.get(0).cancel(running.query(), reason);
  }

  private static <T> CompletableFuture<T> inThread(Supplier<T> task) {
    return CompletableFuture.supplyAsync(task, run -> new Thread(run).start());
  }

  @Override
  public void close() {
    List<CompletableFuture<Void>> closing = new ArrayList<>();
    engines.forEach(engine -> closing.add(CompletableFuture.runAsync(engine::close, run -> new Thread(run).start())));
    closing.forEach(CompletableFuture::join);
    held.close();
  }
}
