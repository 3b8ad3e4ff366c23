package io.faro.sql.shell;

import io.faro.FaroException;
import io.faro.sql.SqlException;
import io.faro.sql.cluster.ProcessCluster;
import io.faro.sql.plan.Plan;
import java.io.PrintStream;
import java.util.List;
import java.util.Locale;
import java.util.Timer;
import java.util.TimerTask;
import java.util.function.Supplier;

/** Runs what is typed into the shell and prints what comes of it. Threads: one. */
final class Interpreter {
  private static final String EXPLAIN = "explain ";

  private final ProcessCluster cluster;
  private final boolean isVerbose;
  private final PrintStream out;
  private final PrintStream err;
  private final Timer timer = new Timer("time limit", true);
  private long timeoutMs; // of each query; 0: none

  Interpreter(ProcessCluster cluster, boolean isVerbose, PrintStream out, PrintStream err) {
    this.cluster = cluster;
    this.isVerbose = isVerbose;
    this.out = out;
    this.err = err;
  }

  /** Runs one statement, without its semicolon, or what begins with a backslash; false if it failed. */
  boolean execute(String statement) {
    try {
      if (statement.startsWith("\\")) {
        command(statement.split("\\s+"));
      } else if (statement.toLowerCase(Locale.ROOT).startsWith(EXPLAIN)) {
        out.print(cluster.plan(statement.substring(EXPLAIN.length())).explain());
      } else {
        query(statement);
      }
      return true;
    } catch (SqlException | FaroException e) {
      err.println("error: " + e.getMessage());
    } catch (RuntimeException | OutOfMemoryError e) { // the shell goes on, whatever it is
      err.println("error: " + e);
    }
    return false;
  }

  private void command(String[] words) {
    if (words[0].equals("\\d") && words.length == 1) {
      cluster.tables().keySet().forEach(out::println);
    } else if (words[0].equals("\\d") && words.length == 2 && cluster.tables().containsKey(words[1])) {
      cluster.tables().get(words[1]).attributes().forEach(out::println);
    } else if (words[0].equals("\\timeout") && words.length == 2 && words[1].matches("\\d{1,9}")) {
      setTimeout(Long.parseLong(words[1]));
    } else {
      throw new SqlException("not understood: " + String.join(" ", words), null);
    }
  }

  /** The time limit of each query from now on; 0: none. */
  void setTimeout(long milliseconds) {
    timeoutMs = milliseconds;
  }

  private void query(String sql) {
    long begin = System.nanoTime();
    Plan plan = cluster.plan(sql);
    if (cluster.ensureWhole()) {
      err.println("a node was lost: all nodes were started anew");
    }
    if (isVerbose) {
      err.println("the query runs in processes " + cluster.pids());
    }
    List<Object[]> rows = limited(() -> cluster.run(sql, plan));
    out.print(ResultTable.format(plan.columns(), rows));
    out.printf(
        Locale.ROOT, "(%d row%s, %d ms)%n",
        rows.size(), rows.size() == 1 ? "" : "s", (System.nanoTime() - begin) / 1_000_000);
  }

  private List<Object[]> limited(Supplier<List<Object[]>> run) {
    TimerTask limit =
        new TimerTask() {
          @Override
          public void run() {
            cluster.cancel("it has run into its time limit of " + timeoutMs + " ms");
          }
        };
    if (timeoutMs > 0) {
      timer.schedule(limit, timeoutMs);
    }
    try {
      return run.get();
    } finally {
      limit.cancel();
    }
  }
}
