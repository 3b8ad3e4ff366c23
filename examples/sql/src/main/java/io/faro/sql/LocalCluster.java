package io.faro.sql;

import io.faro.SessionConfig;
import io.faro.Setting;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

/** All nodes of a cluster in this JVM. Threads: one query at a time. */
public final class LocalCluster implements AutoCloseable {
  private final List<Engine> engines;

  /** {@code settings}: of every node. */
  public LocalCluster(int nodes, int workers, Map<Setting, String> settings, Map<String, Table> tables) {
    List<String> addresses = Addresses.free(nodes);
    List<CompletableFuture<Engine>> opening = new ArrayList<>();
    for (int node = 0; node < nodes; node++) {
      SessionConfig.Builder config = SessionConfig.builder().cluster(node, addresses).workers(workers);
      settings.forEach(config::set);
      opening.add(inThread(() -> new Engine(config.build(), tables)));
    }
    engines = opening.stream().map(CompletableFuture::join).toList();
  }

  /** A query's plan. */
  public Plan plan(String sql) {
    return engines.get(0).plan(sql);
  }

  /** Runs a plan of this cluster; the rows of its result. */
  public List<Object[]> run(Plan plan) {
    Query query = engines.get(0).begin("");
    List<CompletableFuture<List<Object[]>>> running = new ArrayList<>();
    engines.forEach(engine -> running.add(inThread(() -> engine.run(query, plan))));
    return running.stream().map(CompletableFuture::join).toList().get(0);
  }

  private static <T> CompletableFuture<T> inThread(Supplier<T> task) {
    return CompletableFuture.supplyAsync(task, run -> new Thread(run).start());
  }

  @Override
  public void close() {
    List<CompletableFuture<Void>> closing = new ArrayList<>();
    engines.forEach(
        engine ->
            closing.add(
                inThread(
                    () -> {
                      engine.close();
                      return null;
                    })));
    closing.forEach(CompletableFuture::join);
  }
}
