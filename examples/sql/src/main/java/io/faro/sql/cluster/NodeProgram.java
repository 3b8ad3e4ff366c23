package io.faro.sql.cluster;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.faro.SessionConfig;
import io.faro.sql.exec.Engine;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.function.Consumer;
import java.util.function.Function;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/**
 * What {@link NodeProcess} starts: a node other than node 0, which reads queries at its standard input until that ends.
 */
public abstract class NodeProgram implements Callable<Integer> {
  @Mixin protected ClusterOptions options;

  @Option(names = "--node", required = true)
  protected int node;

  @Option(names = "--addresses", required = true, split = ",")
  private List<String> addresses;

  @Option(names = "--sockets", required = true, split = ",")
  private List<String> sockets;

  /** Opens the engine of this node, and hands each line to what is made of it. */
  protected final void runQueries(Function<Engine, Consumer<String>> queries) throws IOException {
    Log.quiet();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, UTF_8));
    SessionConfig config = options.config(node, addresses);
    try (Engine engine = new Engine(config, options.carrier(config, sockets), options.planner(options.tables()))) {
      Consumer<String> query = queries.apply(engine);
      for (String line = in.readLine(); line != null; line = in.readLine()) {
        query.accept(line);
      }
    }
  }
}
