package io.faro.examples.flink;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.trino.tpch.TpchTable;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.flink.client.program.ProgramAbortException;
import org.apache.flink.client.program.ProgramInvocationException;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.ResultKind;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.table.api.internal.TableResultInternal;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.utils.print.PrintStyle;
import org.apache.flink.util.CloseableIterator;
import picocli.CommandLine;
import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Starts a cluster of Flink on this machine, and runs SQL or a program of PyFlink on it. */
@Command(
    name = "./run flink",
    mixinStandardHelpOptions = true,
    sortOptions = false,
    description =
        "Runs SQL, or a program of PyFlink, on a cluster of Apache Flink, processes on this machine, whose exchanges go over Faro.",
    footer = {
      "",
      "The tables are those of TPC-H: lineitem, orders, customer, part, supplier, partsupp, nation, region.",
      "Without -e and --python statements are read: they end with a semicolon.",
      "SET 'key' = 'value' sets something of Flink, \\links prints which links have",
      "carried what, \\q or quit ends."
    })
public final class Shell implements Callable<Integer> {
  private static final Pattern END = Pattern.compile("\\s*(\\\\q|quit|exit)\\s*;?\\s*", Pattern.CASE_INSENSITIVE);
  private static final Pattern WRITES =
      Pattern.compile("(?i)\\s*(INSERT|EXECUTE\\s+(STATEMENT\\s+SET|INSERT)|BEGIN\\s+STATEMENT\\s+SET)\\b");
  private static final Pattern SET = Pattern.compile("(?is)SET\\s+'([^']+)'\\s*=\\s*'([^']*)'");

  /** Statements of SQL. */
  private static final class Sql {
    @Option(names = "-e", paramLabel = "SQL", description = "run these statements, apart by semicolons, and end; may be repeated")
    private List<String> statements = List.of();

    @Option(names = "-f", paramLabel = "FILE", description = "run the statements of this file, and end; may be repeated, after those of -e")
    private List<Path> files = List.of();

    private boolean isEmpty() {
      return statements.isEmpty() && files.isEmpty();
    }

    /**
     * @throws IOException if a file cannot be read
     */
    private List<String> read() throws IOException {
      List<String> all = new ArrayList<>(statements);
      for (Path file : files) {
        try {
          all.add(Files.readString(file));
        } catch (IOException unreadable) {
          throw new IOException("-f " + file + " cannot be read: " + unreadable, unreadable);
        }
      }
      return all;
    }
  }

  /** What there is to run, if it is not read. */
  private static final class Given {
    @ArgGroup(exclusive = false)
    private Sql sql = new Sql();

    @Option(
        names = "--python",
        paramLabel = "FILE",
        description = "run this program of PyFlink, as `flink run --python` would, and end")
    private Path program;
  }

  @Mixin private ClusterOptions options;

  @ArgGroup private Given given = new Given();

  @Parameters(paramLabel = "ARGUMENT", arity = "0..*", description = "what the program of --python is given")
  private List<String> arguments = List.of();

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
    if (given.program == null && !arguments.isEmpty()) {
      System.err.println("error: arguments without --python: " + String.join(" ", arguments));
      return CommandLine.ExitCode.USAGE;
    }
    if (given.program != null && !Files.isReadable(given.program)) {
      System.err.println("error: " + given.program + " cannot be read");
      return CommandLine.ExitCode.USAGE;
    }
    try (LocalCluster cluster = new LocalCluster(options)) {
      List<String> statements = given.sql.read();
      if (given.program != null) {
        start(cluster);
        return executeProgram(cluster);
      }
      TpchTables tpch = new TpchTables(options.folder(), scale);
      if (!tpch.areThere()) {
        System.err.println("Writing the tables of TPC-H, scale factor " + scale + ", into " + options.folder() + ", once");
      }
      tpch.write();
      start(cluster);
      tables = environment(cluster);
      for (TpchTable<?> table : TpchTable.getTables()) {
        tables.executeSql(tpch.statement(table));
      }
      return given.sql.isEmpty() ? readAll(cluster) : executeAll(statements, cluster);
    } catch (IOException failed) {
      System.err.println("error: " + failed.getMessage());
      return 1;
    }
  }

  private void start(LocalCluster cluster) throws IOException, InterruptedException {
    System.err.printf(
        "Starting a JobManager and %d TaskManagers of %d slots, over %s%n",
        options.taskManagers, options.slots, options.isNetty ? "Netty" : "Faro");
    cluster.start();
    links = options.isNetty ? null : new Links(options.home.resolve("build/release/bin/faro"), cluster);
  }

  private TableEnvironment environment(LocalCluster cluster) {
    EnvironmentSettings.Builder settings =
        EnvironmentSettings.newInstance().withConfiguration(cluster.clientConfiguration());
    return TableEnvironment.create((isStreaming ? settings.inStreamingMode() : settings.inBatchMode()).build());
  }

  private int executeProgram(LocalCluster cluster) throws IOException, InterruptedException {
    boolean isWell = true;
    try {
      new PythonProgram(options.folder().resolve("python"), given.program, arguments).run(cluster.clientConfiguration());
    } catch (ProgramInvocationException | ProgramAbortException failed) {
      System.err.println("error: " + given.program + ": " + rootOf(failed).getMessage());
      isWell = false;
    }
    cluster.check();
    printLinks();
    printTime();
    return isWell ? 0 : 1;
  }

  private int executeAll(List<String> statements, LocalCluster cluster) throws IOException, InterruptedException {
    boolean isWell = true;
    for (String each : statements) {
      for (String statement : Statements.split(each)) {
        isWell &= execute(statement);
        cluster.check();
      }
    }
    printLinks();
    printTime();
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
      if (Statements.isComplete(begun.toString())) {
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
          && WRITES.matcher(statement).lookingAt()) {
        result.await();
      } else {
        print(result);
      }
      System.err.printf("%.1f s for this statement%n", (System.nanoTime() - begun) / 1e9);
      return true;
    } catch (ExecutionException | RuntimeException failed) {
      System.err.println("error: " + rootOf(failed).getMessage());
      return false;
    }
  }

  /** Columns of a batch are as wide as what is in them. */
  @SuppressWarnings("try") // CloseableIterator.close
  private void print(TableResult result) {
    if (isStreaming || result.getJobClient().isEmpty() || !(result instanceof TableResultInternal known)) {
      result.print();
      return;
    }
    PrintWriter out = new PrintWriter(System.out, true, UTF_8);
    try (CloseableIterator<RowData> rows = known.collectInternal()) {
      PrintStyle.tableauWithDataInferredColumnWidths(
              result.getResolvedSchema(), known.getRowDataToStringConverter(), Integer.MAX_VALUE, false, false)
          .print(rows, out);
    } catch (RuntimeException failed) {
      throw failed;
    } catch (Exception failed) {
      throw new IllegalStateException(failed);
    }
    out.flush();
  }

  /** What the command took, apart from its statements. */
  private static void printTime() {
    long begun = ManagementFactory.getRuntimeMXBean().getStartTime();
    System.err.printf("%.1f s in all, with the time in which the cluster has started%n", (System.currentTimeMillis() - begun) / 1e3);
  }

  private static Throwable rootOf(Throwable failed) {
    Throwable cause = failed;
    while (cause.getCause() != null) {
      cause = cause.getCause();
    }
    return cause;
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
