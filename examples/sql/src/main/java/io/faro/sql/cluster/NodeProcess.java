package io.faro.sql.cluster;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.faro.sql.exec.Query;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** A node in a JVM of its own, with the limits of this one; it ends when this process does. */
public final class NodeProcess implements AutoCloseable {
  private final Process process;
  private final PrintStream in;

  /**
   * Starts it.
   *
   * @param program {@link Node}, or what takes the same arguments
   * @param output where its standard output goes
   * @param addresses of Faro
   * @param sockets of the carrier, if it is that
   */
  public NodeProcess(
      Class<?> program,
      ProcessBuilder.Redirect output,
      int node,
      List<String> addresses,
      List<String> sockets,
      ClusterOptions options) {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    for (String argument : ManagementFactory.getRuntimeMXBean().getInputArguments()) {
      if (argument.startsWith("-X") || argument.startsWith("--enable-native-access")) {
        command.add(argument);
      }
    }
    command.addAll(List.of("-cp", System.getProperty("java.class.path"), program.getName()));
    command.addAll(List.of("--node=" + node, "--addresses=" + String.join(",", addresses)));
    command.add("--sockets=" + String.join(",", sockets));
    command.addAll(options.arguments());
    try {
      process =
          new ProcessBuilder(command)
              .redirectOutput(output)
              .redirectError(ProcessBuilder.Redirect.INHERIT)
              .start();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    in = new PrintStream(process.getOutputStream(), true, UTF_8);
  }

  long pid() {
    return process.pid();
  }

  boolean isAlive() {
    return process.isAlive();
  }

  /** Never fails: that a node is lost is told by Faro. */
  void run(Query query) {
    tell(query.encoded());
  }

  /** A line to its standard input. */
  public void tell(String line) {
    in.println(line);
  }

  /** Its standard output, if that is a pipe. */
  public InputStream output() {
    return process.getInputStream();
  }

  /** Ends it at once. */
  @Override
  public void close() {
    process.destroyForcibly();
    in.close();
  }
}
