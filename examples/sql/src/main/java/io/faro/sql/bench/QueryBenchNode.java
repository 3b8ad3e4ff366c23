package io.faro.sql.bench;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.faro.SessionConfig;
import io.faro.sql.cluster.ClusterOptions;
import io.faro.sql.cluster.Log;
import io.faro.sql.exec.Engine;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/**
 * The process of a node of {@link QueryBench} other than node 0: runs each {@link MeasuredQuery} that it reads, and
 * answers with a line of what that took. If one fails it says why, in one line, and ends with 1.
 */
@Command(name = "node")
public final class QueryBenchNode implements Callable<Integer> {
  @Mixin private ClusterOptions options;

  @Option(names = "--node", required = true)
  private int node;

  @Option(names = "--addresses", required = true, split = ",")
  private List<String> addresses;

  @Option(names = "--sockets", required = true, split = ",")
  private List<String> sockets;

  private QueryBenchNode() {}

  /** See {@link QueryBench}, which starts it. */
  public static void main(String[] arguments) {
    System.exit(new CommandLine(new QueryBenchNode()).execute(arguments));
  }

  @Override
  public Integer call() throws IOException {
    Log.quiet();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, UTF_8));
    SessionConfig config = options.config(node, addresses);
    try (Engine engine = new Engine(config, options.carrier(config, sockets), options.tables())) {
      MeasuredEngine measured = new MeasuredEngine(engine, options.isOverFaro());
      for (String line = in.readLine(); line != null; line = in.readLine()) {
        System.out.println(measured.run(MeasuredQuery.parse(line)).spent().encoded());
      }
    } catch (RuntimeException e) {
      System.err.println("node " + node + ": " + e.getMessage());
      return 1;
    }
    return 0;
  }
}
