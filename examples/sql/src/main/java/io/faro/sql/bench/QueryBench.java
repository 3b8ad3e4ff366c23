package io.faro.sql.bench;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.faro.SessionConfig;
import io.faro.sockets.HeldAddresses;
import io.faro.sql.SqlException;
import io.faro.sql.cluster.Addresses;
import io.faro.sql.cluster.ClusterOptions;
import io.faro.sql.cluster.Log;
import io.faro.sql.cluster.NodeProcess;
import io.faro.sql.exec.Engine;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/**
 * Measures queries on a cluster of processes, this one included: time, CPU time of all processes without the JVM's
 * compilers, and which part of the workers' CPU time is spent in exchanges. Prints one JSON object. If anything fails
 * it says so in a line, and ends with 1; nothing is waited for longer than the time limit of a query.
 */
@Command(name = "query-bench", mixinStandardHelpOptions = true)
public final class QueryBench implements Callable<Integer> {
  @Mixin private ClusterOptions options;

  @Option(names = "--queries", split = ",", paramLabel = "NAME,...", description = "of the data (all)")
  private List<String> names = List.of();

  @Option(names = "--warmup", paramLabel = "N", description = "runs that are not measured (${DEFAULT-VALUE})")
  private int warmup = 10;

  @Option(names = "--laps", paramLabel = "N", description = "runs that are timed (${DEFAULT-VALUE})")
  private int laps = 3;

  @Option(names = "--sampled", paramLabel = "N", description = "runs whose stacks are looked at (${DEFAULT-VALUE})")
  private int sampled = 2;

  @Option(names = "--limit", paramLabel = "S", description = "time limit of a query in seconds (${DEFAULT-VALUE})")
  private int limitS = 60;

  @Option(
      names = "--in-turn",
      description = "before it runs each query once it prints the line 'turn', and waits for a line of its input")
  private boolean isInTurn;

  private final List<NodeProcess> others = new ArrayList<>();
  private final List<BufferedReader> answers = new ArrayList<>(); // of others
  private final BufferedReader turns = new BufferedReader(new InputStreamReader(System.in, UTF_8));

  private QueryBench() {}

  /** A run of a query. */
  private record Run(double seconds, MeasuredEngine.Spent spent, int rows, String checksum) {}

  public static void main(String[] arguments) {
    System.exit(new CommandLine(new QueryBench()).execute(arguments));
  }

  @Override
  public Integer call() {
    Log.quiet();
    int nodes = options.nodes();
    try (HeldAddresses held = Addresses.hold(2 * nodes, options.hosts())) {
      List<String> addresses = held.all().subList(0, nodes);
      List<String> sockets = held.all().subList(nodes, 2 * nodes);
      SessionConfig config = options.config(0, addresses);
      for (int node = 1; node < nodes; node++) {
        NodeProcess process =
            new NodeProcess(QueryBenchNode.class, ProcessBuilder.Redirect.PIPE, node, addresses, sockets, options);
        others.add(process);
        answers.add(new BufferedReader(new InputStreamReader(process.output(), UTF_8)));
      }
      try (Engine engine = new Engine(config, options.carrier(config, sockets), options.planner(options.tables()))) {
        System.out.println(measure(engine));
      }
      return 0;
    } catch (IOException | RuntimeException e) {
      System.err.println("query-bench: " + e.getMessage());
      return 1;
    } finally {
      others.forEach(NodeProcess::close);
    }
  }

  private String measure(Engine engine) throws IOException {
    MeasuredEngine measured = new MeasuredEngine(engine, options.isOverFaro());
    Map<String, String> queries = new LinkedHashMap<>(options.queries());
    if (!names.isEmpty()) {
      if (!queries.keySet().containsAll(names)) {
        throw new SqlException("queries of these tables are " + queries.keySet(), null);
      }
      queries.keySet().retainAll(Set.copyOf(names));
    }
    for (int i = 0; i < warmup; i++) {
      awaitTurn();
      for (String sql : queries.values()) {
        run(engine, measured, sql, i == warmup - 1); // what looks has to be warm, too
      }
    }
    Map<String, List<Run>> timed = new LinkedHashMap<>();
    Map<String, MeasuredEngine.Spent> places = new LinkedHashMap<>();
    for (int i = 0; i < laps + sampled; i++) {
      awaitTurn();
      boolean isSampled = i >= laps;
      for (Map.Entry<String, String> query : queries.entrySet()) {
        Run run = run(engine, measured, query.getValue(), isSampled);
        timed.computeIfAbsent(query.getKey(), name -> new ArrayList<>()).add(run);
        if (isSampled) {
          places.merge(query.getKey(), run.spent(), MeasuredEngine.Spent::plus);
        }
      }
    }
    return timed.entrySet().stream()
        .map(query -> json(query.getKey(), query.getValue(), places.get(query.getKey())))
        .collect(Collectors.joining(", ", "{\"queries\": [", "]}"));
  }

  private void awaitTurn() throws IOException {
    if (isInTurn) {
      System.out.println("turn");
      if (turns.readLine() == null) {
        throw new IOException("the input has ended before its turn");
      }
    }
  }

  private Run run(Engine engine, MeasuredEngine measured, String sql, boolean isSampled) throws IOException {
    measured.plan(sql);
    MeasuredQuery query = new MeasuredQuery(engine.begin(sql), isSampled);
    long begin = System.nanoTime();
    others.forEach(node -> node.tell(query.encoded()));
    CompletableFuture<Void> limit =
        CompletableFuture.runAsync(
            () -> engine.cancel(query.query(), "it has run into its time limit of " + limitS + " s"),
            CompletableFuture.delayedExecutor(limitS, TimeUnit.SECONDS));
    MeasuredEngine.Outcome outcome;
    try {
      outcome = measured.run(query);
    } finally {
      limit.cancel(false);
    }
    double seconds = (System.nanoTime() - begin) / 1e9;
    MeasuredEngine.Spent spent = outcome.spent();
    for (BufferedReader node : answers) {
      spent = spent.plus(MeasuredEngine.Spent.parse(answer(node)));
    }
    return new Run(seconds, spent, outcome.rows().size(), ResultChecksum.of(outcome.rows()));
  }

  private String answer(BufferedReader node) throws IOException {
    CompletableFuture<String> line = new CompletableFuture<>();
    Thread reader =
        new Thread(
            () -> {
              try {
                line.complete(node.readLine());
              } catch (IOException e) {
                line.complete(null);
              }
            });
    reader.setDaemon(true);
    reader.start();
    try {
      String text = line.get(limitS, TimeUnit.SECONDS);
      if (text == null) {
        throw new IOException("a node has ended");
      }
      return text;
    } catch (TimeoutException | ExecutionException e) {
      throw new IOException("a node does not answer", e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted", e);
    }
  }

  /** {@code sampled} runs are the last ones. */
  private String json(String name, List<Run> runs, MeasuredEngine.Spent places) {
    String times =
        runs.subList(0, laps).stream()
            .map(run -> number("{\"seconds\": %.6f, \"cpu_seconds\": %.6f}", run.seconds(), run.spent().cpuNanos() / 1e9))
            .collect(Collectors.joining(", "));
    Run first = runs.get(0);
    boolean isSame =
        runs.stream().allMatch(run -> run.rows() == first.rows() && run.checksum().equals(first.checksum()));
    OptionalDouble seen = places == null ? OptionalDouble.empty() : places.shuffleShare();
    String share = seen.isEmpty() ? "null" : number("%.4f", seen.getAsDouble());
    return number(
        "{\"name\": \"%s\", \"rows\": %d, \"checksum\": \"%s\", \"verified\": %b, \"shuffle_share\": %s, \"runs\": [%s]}",
        name, first.rows(), first.checksum(), isSame, share, times);
  }

  private static String number(String format, Object... values) {
    return String.format(Locale.ROOT, format, values);
  }
}
