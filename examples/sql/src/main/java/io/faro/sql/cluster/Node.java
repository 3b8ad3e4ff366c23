package io.faro.sql.cluster;

import io.faro.sql.SqlException;
import io.faro.sql.exec.Engine;
import io.faro.sql.exec.Query;
import java.io.IOException;
import org.jline.utils.Signals;
import picocli.CommandLine;
import picocli.CommandLine.Command;

/**
 * The process of a node other than node 0: runs each {@link Query} that it reads, a line of its standard input,
 * until that ends. What goes wrong in a query is told to the others by Faro.
 */
@Command(name = "node")
public final class Node extends NodeProgram {
  private Node() {}

  /** See {@link ProcessCluster}, which starts it. */
  public static void main(String[] arguments) {
    System.exit(new CommandLine(new Node()).execute(arguments));
  }

  @Override
  public Integer call() throws IOException {
    Signals.register("INT", () -> {}); // a terminal sends it to all processes; the shell decides
    runQueries(engine -> line -> run(engine, Query.parse(line)));
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
