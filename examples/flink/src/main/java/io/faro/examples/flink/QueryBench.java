package io.faro.examples.flink;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.trino.tpch.TpchTable;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/**
 * Runs the queries of {@code examples/flink/queries} on a cluster, all of them in each round, and prints as a line of JSON what each
 * took and gave. {@code tests/evaluate} calls it, with two clusters that take turns: before each query it prints {@code turn}, and waits for
 * a line.
 */
@Command(name = "QueryBench", sortOptions = false, description = "Runs queries over and over, and prints what each took.")
public final class QueryBench implements Callable<Integer> {
  /** How the rows of an exchange are carried. */
  enum Mode {
    PIPELINED("ALL_EXCHANGES_PIPELINED"),
    BLOCKING("ALL_EXCHANGES_BLOCKING"),
    STREAMS(null);

    private final String exchanges;

    Mode(String exchanges) {
      this.exchanges = exchanges;
    }
  }

  /** One run of a query: what the TaskManagers took, and the rows that came out. */
  private record Run(double seconds, ProcessTimes taken, long rows, long checksum) {}

  @Mixin private ClusterOptions options;

  @Parameters(paramLabel = "CARRIER", description = "faro or netty")
  private String carrier;

  @Option(names = "--mode", required = true, description = "${COMPLETION-CANDIDATES}: of TPC-H by these exchanges, or as streams")
  private Mode mode;

  @Option(names = "--queries", split = ",", paramLabel = "NAME", description = "only these")
  private List<String> names = List.of();

  @Option(names = "--scale", paramLabel = "SF", defaultValue = "0.01", description = "of TPC-H")
  private double scale;

  @Option(names = "--events", paramLabel = "N", defaultValue = "100000", description = "of a stream")
  private long events;

  @Option(names = "--warmup", paramLabel = "N", defaultValue = "1", description = "rounds before those that count")
  private int warmup;

  @Option(names = "--rounds", paramLabel = "N", defaultValue = "1", description = "that count")
  private int rounds;

  private final BufferedReader input = new BufferedReader(new InputStreamReader(System.in, UTF_8));
  private TableEnvironment tables;

  private QueryBench() {}

  /** Ends with 0 if all queries ran. */
  public static void main(String[] arguments) {
    System.exit(new CommandLine(new QueryBench()).setCaseInsensitiveEnumValuesAllowed(true).execute(arguments));
  }

  @Override
  public Integer call() throws Exception {
    options.isNetty = carrier.equals("netty");
    Map<String, String> queries = queries();
    Map<String, List<Run>> runs = new LinkedHashMap<>();
    try (LocalCluster cluster = new LocalCluster(options)) {
      TpchTables tpch = new TpchTables(options.folder(), scale);
      if (mode != Mode.STREAMS) {
        tpch.write();
      }
      cluster.start();
      openTables(cluster, tpch);
      for (int round = -warmup; round < rounds; round++) {
        for (Map.Entry<String, String> query : queries.entrySet()) {
          awaitTurn();
          Run run = run(query.getValue(), cluster);
          cluster.check();
          if (round >= 0) {
            runs.computeIfAbsent(query.getKey(), ignored -> new ArrayList<>()).add(run);
          }
        }
      }
    }
    System.out.println(new ObjectMapper().writeValueAsString(Map.of("carrier", carrier, "queries", report(runs))));
    return 0;
  }

  private Map<String, String> queries() throws IOException {
    Path folder = folder();
    Map<String, String> found = new LinkedHashMap<>();
    try (Stream<Path> files = Files.list(folder)) {
      for (Path file : files.sorted().collect(Collectors.toList())) {
        String name = file.getFileName().toString().replace(".sql", "");
        if (!name.equals("tables") && (names.isEmpty() || names.contains(name))) {
          found.put(name, Statements.split(Files.readString(file)).get(0));
        }
      }
    }
    if (found.size() < Math.max(1, names.size())) {
      throw new IOException("--queries " + String.join(",", names) + ": not all of them are in " + folder);
    }
    return found;
  }

  private Path folder() {
    return options.home.resolve("examples/flink/queries").resolve(mode == Mode.STREAMS ? "streams" : "tpch");
  }

  private void openTables(LocalCluster cluster, TpchTables tpch) throws IOException {
    EnvironmentSettings.Builder settings =
        EnvironmentSettings.newInstance().withConfiguration(cluster.clientConfiguration());
    tables = TableEnvironment.create((mode == Mode.STREAMS ? settings.inStreamingMode() : settings.inBatchMode()).build());
    if (mode == Mode.STREAMS) {
      // Nexmark's rows are all exchanged; with two phases of an aggregation there would be few.
      tables.getConfig().set("table.optimizer.agg-phase-strategy", "ONE_PHASE");
      for (String statement : Statements.split(Files.readString(folder().resolve("tables.sql")))) {
        tables.executeSql(statement.replace("${last}", String.valueOf(events - 1)));
      }
      return;
    }
    tables.getConfig().set("execution.batch-shuffle-mode", mode.exchanges);
    for (TpchTable<?> table : TpchTable.getTables()) {
      tables.executeSql(tpch.statement(table));
    }
  }

  private void awaitTurn() throws IOException {
    System.out.println("turn");
    if (input.readLine() == null) {
      throw new IOException("the standard input has ended before the last turn");
    }
  }

  private Run run(String query, LocalCluster cluster) throws Exception {
    ProcessTimes before = ProcessTimes.now(cluster.taskManagers().values());
    long begun = System.nanoTime();
    long rows = 0;
    long checksum = 0;
    CloseableIterator<Row> result = tables.executeSql(query).collect();
    while (result.hasNext()) {
      rows++;
      checksum += mix(result.next().toString()); // whatever their order
    }
    result.close();
    double seconds = (System.nanoTime() - begun) / 1e9;
    return new Run(seconds, ProcessTimes.now(cluster.taskManagers().values()).since(before), rows, checksum);
  }

  private static long mix(String row) {
    long hash = 0;
    for (byte each : row.getBytes(UTF_8)) {
      hash = (hash ^ each) * 0x9E3779B97F4A7C15L;
      hash ^= hash >>> 29;
    }
    return hash;
  }

  /** A query whose runs did not all give the same is not verified. */
  private static List<Map<String, Object>> report(Map<String, List<Run>> runs) {
    List<Map<String, Object>> report = new ArrayList<>();
    runs.forEach(
        (name, ofOne) -> {
          Run first = ofOne.get(0);
          boolean same = ofOne.stream().allMatch(one -> one.rows == first.rows && one.checksum == first.checksum);
          report.add(
              Map.of(
                  "name", name, "rows", first.rows, "checksum", String.format("%016x", first.checksum), "verified", same,
                  "runs", ofOne.stream().map(QueryBench::values).collect(Collectors.toList())));
        });
    return report;
  }

  private static Map<String, Double> values(Run run) {
    return Map.of(
        "seconds", run.seconds, "cpu_seconds", run.taken.seconds(), "transport_cpu_seconds", run.taken.transportSeconds());
  }
}
