package io.faro.sql.shell;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.faro.FaroException;
import io.faro.sql.SqlException;
import io.faro.sql.cluster.ClusterOptions;
import io.faro.sql.cluster.Log;
import io.faro.sql.cluster.ProcessCluster;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.List;
import java.util.concurrent.Callable;
import org.jline.reader.EndOfFileException;
import org.jline.reader.LineReader;
import org.jline.reader.LineReaderBuilder;
import org.jline.reader.UserInterruptException;
import org.jline.terminal.Terminal;
import org.jline.terminal.TerminalBuilder;
import org.jline.utils.Signals;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** The shell: node 0 of a cluster that lives as long as it does. */
@Command(
    name = "sql",
    mixinStandardHelpOptions = true,
    description = "Types SQL into a cluster of processes on this machine, over Faro.",
    footer = {
      "",
      "A statement ends with a semicolon. `explain select …` shows the plan with its exchanges,",
      "\\d the tables, \\d TABLE the columns of one, \\timeout MS sets the time limit, \\q ends.",
      "Ctrl-C cancels the query that runs."
    })
public final class Shell implements Callable<Integer> {
  private static final int INTERRUPTED = 130; // as shells say it

  @Mixin private ClusterOptions options;

  @Option(names = "-e", paramLabel = "SQL", description = "runs this and ends; may be repeated")
  private List<String> statements = List.of();

  @Option(names = "--timeout", paramLabel = "MS", description = "time limit of each query in ms (none)")
  private long timeoutMs;

  @Option(names = "--verbose", description = "says which processes run a query")
  private boolean isVerbose;

  private Shell() {}

  /** Ends with 0 if all statements ran. */
  public static void main(String[] arguments) {
    System.exit(new CommandLine(new Shell()).execute(arguments));
  }

  @Override
  public Integer call() throws IOException {
    Log.quiet();
    try (ProcessCluster cluster = new ProcessCluster(options)) {
      Interpreter interpreter = new Interpreter(cluster, isVerbose, System.out, System.err);
      interpreter.setTimeout(timeoutMs);
      if (statements.isEmpty() && System.console() != null) {
        talk(cluster, interpreter);
        return 0;
      }
      Signals.register("INT", () -> interrupt(cluster));
      return (statements.isEmpty() ? readAll(interpreter) : executeAll(interpreter)) ? 0 : 1;
    } catch (SqlException | FaroException e) {
      System.err.println("error: " + e.getMessage());
      return 1;
    }
  }

  private boolean executeAll(Interpreter interpreter) {
    boolean isWell = true;
    for (String statement : statements) {
      isWell &= interpreter.execute(statement.strip().replaceFirst(";$", ""));
    }
    return isWell;
  }

  private static boolean readAll(Interpreter interpreter) throws IOException {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, UTF_8));
    StatementReader statements = new StatementReader();
    boolean isWell = true;
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String statement = statements.add(line);
      if (StatementReader.QUIT.equals(statement)) {
        break;
      }
      isWell &= statement == null || interpreter.execute(statement);
    }
    return isWell;
  }

  private static void interrupt(ProcessCluster cluster) {
    if (!cluster.cancel("cancelled at the shell")) {
      System.exit(INTERRUPTED);
    }
  }

  private static void talk(ProcessCluster cluster, Interpreter interpreter) throws IOException {
    try (Terminal terminal = TerminalBuilder.builder().nativeSignals(true).build()) {
      terminal.handle(Terminal.Signal.INT, signal -> cluster.cancel("cancelled at the shell"));
      LineReader reader =
          LineReaderBuilder.builder()
              .terminal(terminal)
              .option(LineReader.Option.DISABLE_EVENT_EXPANSION, true) // it would take ! and \ as its own
              .build();
      StatementReader statements = new StatementReader();
      while (true) {
        try {
          String statement = statements.add(reader.readLine(statements.isEmpty() ? "faro> " : "    > "));
          if (StatementReader.QUIT.equals(statement)) {
            return;
          }
          if (statement != null) {
            interpreter.execute(statement);
          }
        } catch (UserInterruptException e) {
          statements.clear();
        } catch (EndOfFileException e) {
          return;
        }
      }
    }
  }
}
