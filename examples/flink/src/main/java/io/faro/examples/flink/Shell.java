package io.faro.examples.flink;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.trino.tpch.TpchTable;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.ResultKind;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Starts a cluster of Flink on this machine, and runs SQL on it. */
@Command(
    name = "./run flink",
    mixinStandardHelpOptions = true,
    sortOptions = false,
    description = "Runs SQL on a cluster of Apache Flink, processes on this machine, whose exchanges go over Faro.",
    footer = {
      "",
      "The tables are those of TPC-H: lineitem, orders, customer, part, supplier, partsupp, nation, region.",
      "Without -e statements are read: they end with a semicolon. SET 'key' = 'value' sets something of Flink,",
      "\\links prints which links have carried what, \\q or quit ends."
    })
public final class Shell implements Callable<Integer> {
  private static final Pattern END = Pattern.compile("\\s*(\\\\q|quit|exit)\\s*;?\\s*", Pattern.CASE_INSENSITIVE);
  private static final Pattern SET = Pattern.compile("(?is)SET\\s+'([^']+)'\\s*=\\s*'([^']*)'");

  @Mixin private ClusterOptions options;

  @Option(names = "-e", paramLabel = "SQL", description = "run these statements, apart by semicolons, and end; may be repeated")
  private List<String> statements = List.of();

  @Option(names = "-f", paramLabel = "FILE", description = "run the statements of this file, and end; may be repeated, after those of -e")
  private List<Path> files = List.of();

  @Option(names = "--scale", paramLabel = "SF", defaultValue = "0.01", description = "scale factor of TPC-H (${DEFAULT-VALUE})")
  private double scale;

  @Option(names = "--streaming", description = "run statements as streams, not in batches")
  private boolean isStreaming;

  private TableEnvironment tables;
  private Links links;

  private Shell() {}

  /** Ends with 0 if all statements ran. */
  public static void main(String[] arguments) {
    System.exit(new CommandLine(new Shell()).execute(arguments));
  }

  @Override
  public Integer call() throws InterruptedException {
    List<String> given = new ArrayList<>(statements);
    for (Path file : files) {
      try {
        given.add(Files.readString(file));
      } catch (IOException unreadable) {
        System.err.println("error: -f " + file + " cannot be read: " + unreadable.getMessage());
        return 1;
      }
    }
    try (LocalCluster cluster = new LocalCluster(options)) {
      TpchTables tpch = new TpchTables(options.folder(), scale);
      if (!tpch.areThere()) {
        System.err.println("Writing the tables of TPC-H, scale factor " + scale + ", into " + options.folder() + ", once");
      }
      tpch.write();
      System.err.printf(
          "Starting a JobManager and %d TaskManagers of %d slots, over %s%n",
          options.taskManagers, options.slots, options.isNetty ? "Netty" : "Faro");
      cluster.start();
      links = options.isNetty ? null : new Links(options.home.resolve("build/release/bin/faro"), cluster);
      tables = environment(cluster);
      for (TpchTable<?> table : TpchTable.getTables()) {
        tables.executeSql(tpch.statement(table));
      }
      return given.isEmpty() ? readAll(cluster) : executeAll(given, cluster);
    } catch (IOException failed) {
      System.err.println("error: " + failed.getMessage());
      return 1;
    }
  }

  private TableEnvironment environment(LocalCluster cluster) {
    EnvironmentSettings.Builder settings =
        EnvironmentSettings.newInstance().withConfiguration(cluster.clientConfiguration());
    return TableEnvironment.create((isStreaming ? settings.inStreamingMode() : settings.inBatchMode()).build());
  }

  private int executeAll(List<String> given, LocalCluster cluster) throws IOException, InterruptedException {
    boolean isWell = true;
    for (String each : given) {
      for (String statement : Statements.split(each)) {
        isWell &= execute(statement);
        cluster.check();
      }
    }
    printLinks();
    return isWell ? 0 : 1;
  }

  private int readAll(LocalCluster cluster) throws IOException, InterruptedException {
    boolean isTerminal = System.console() != null;
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, UTF_8));
    StringBuilder begun = new StringBuilder();
    boolean isWell = true;
    while (true) {
      if (isTerminal) {
        System.out.print(begun.isEmpty() ? "flink> " : "    -> ");
        System.out.flush();
      }
      String line = lines.readLine();
      if (line == null || (begun.isEmpty() && END.matcher(line).matches())) {
        break;
      }
      if (line.strip().equals("\\links")) {
        printLinks();
        continue;
      }
      begun.append(line).append('\n');
      if (line.stripTrailing().endsWith(";")) {
        for (String statement : Statements.split(begun.toString())) {
          isWell &= execute(statement);
          cluster.check();
        }
        begun.setLength(0);
      }
    }
    printLinks();
    return isWell || isTerminal ? 0 : 1;
  }

  /** Prints a result, or why there is none. */
  private boolean execute(String statement) throws InterruptedException {
    long begun = System.nanoTime();
    try {
      Matcher set = SET.matcher(statement);
      if (set.matches()) {
        tables.getConfig().set(set.group(1), set.group(2));
        return true;
      }
      TableResult result = tables.executeSql(statement);
      if (result.getResultKind() == ResultKind.SUCCESS_WITH_CONTENT && result.getJobClient().isPresent()
          && statement.regionMatches(true, 0, "INSERT", 0, 6)) {
        result.await();
      } else {
        result.print();
      }
      System.err.printf("%.1f s%n", (System.nanoTime() - begun) / 1e9);
      return true;
    } catch (ExecutionException | RuntimeException failed) {
      Throwable cause = failed;
      while (cause.getCause() != null) {
        cause = cause.getCause();
      }
      System.err.println("error: " + cause.getMessage());
      return false;
    }
  }

  private void printLinks() throws IOException, InterruptedException {
    if (links == null) {
      System.out.println("Exchanges between TaskManagers went over Netty.");
    } else {
      System.out.println("What came over which link, over Faro:");
      links.print(System.out);
    }
  }
}
