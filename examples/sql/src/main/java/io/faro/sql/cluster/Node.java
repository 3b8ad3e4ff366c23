package io.faro.sql.cluster;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.faro.SessionConfig;
import io.faro.sql.SqlException;
import io.faro.sql.exec.Engine;
import io.faro.sql.exec.Query;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.List;
import java.util.concurrent.Callable;
import org.jline.utils.Signals;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/**
 * The process of a node other than node 0: runs each {@link Query} that it reads, a line of its standard input,
 * until that ends. What goes wrong in a query is told to the others by Faro.
 */
@Command(name = "node")
public final class Node implements Callable<Integer> {
  @Mixin private ClusterOptions options;

  @Option(names = "--node", required = true)
  private int node;

  @Option(names = "--addresses", required = true, split = ",")
  private List<String> addresses;

  @Option(names = "--sockets", required = true, split = ",")
  private List<String> sockets;

  private Node() {}

  /** See {@link ProcessCluster}, which starts it. */
  public static void main(String[] arguments) {
    System.exit(new CommandLine(new Node()).execute(arguments));
  }

  @Override
  public Integer call() throws IOException {
    Signals.register("INT", () -> {}); // a terminal sends it to all processes; the shell decides
    Log.quiet();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, UTF_8));
    SessionConfig config = options.config(node, addresses);
    try (Engine engine = new Engine(config, options.carrier(config, sockets), options.tables())) {
      for (String line = in.readLine(); line != null; line = in.readLine()) {
        run(engine, Query.parse(line));
      }
    }
    return 0;
  }

  private static void run(Engine engine, Query query) {
    try {
      engine.run(query, engine.plan(query.sql()));
    } catch (SqlException e) {
      engine.cancel(query, e.getMessage());
    } catch (RuntimeException e) {
      // Node 0 has had it, too.
    }
  }
}
