package io.faro.sql.bench;

import io.faro.sql.cluster.NodeProgram;
import java.io.IOException;
import picocli.CommandLine;
import picocli.CommandLine.Command;

/**
 * The process of a node of {@link QueryBench} other than node 0: runs each {@link MeasuredQuery} that it reads, and
 * answers with a line of what that took. If one fails it says why, in one line, and ends with 1.
 */
@Command(name = "node")
public final class QueryBenchNode extends NodeProgram {
  private QueryBenchNode() {}

  /** See {@link QueryBench}, which starts it. */
  public static void main(String[] arguments) {
    System.exit(new CommandLine(new QueryBenchNode()).execute(arguments));
  }

  @Override
  public Integer call() throws IOException {
    try {
      runQueries(engine -> {
        MeasuredEngine measured = new MeasuredEngine(engine, options.isOverFaro());
        return line -> System.out.println(measured.run(MeasuredQuery.parse(line)).spent().encoded());
      });
    } catch (RuntimeException e) {
      System.err.println("node " + node + ": " + e.getMessage());
      return 1;
    }
    return 0;
  }
}
