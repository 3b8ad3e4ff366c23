package io.faro.sql;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** A {@link Node} in a JVM of its own, with the limits of this one; it ends when this process does. */
final class NodeProcess implements AutoCloseable {
  private final Process process;
  private final PrintStream in;

  /** {@code addresses}: of Faro; {@code sockets}: of the carrier, if it is that. */
  NodeProcess(int node, List<String> addresses, List<String> sockets, ClusterOptions options) {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    for (String argument : ManagementFactory.getRuntimeMXBean().getInputArguments()) {
      if (argument.startsWith("-X") || argument.startsWith("--enable-native-access")) {
        command.add(argument);
      }
    }
    command.addAll(List.of("-cp", System.getProperty("java.class.path"), Node.class.getName()));
    command.addAll(List.of("--node=" + node, "--addresses=" + String.join(",", addresses)));
    command.add("--sockets=" + String.join(",", sockets));
    command.addAll(options.arguments());
    try {
      process =
          new ProcessBuilder(command)
              .redirectOutput(ProcessBuilder.Redirect.INHERIT)
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
    in.println(query.encoded());
  }

  /** Ends it at once. */
  @Override
  public void close() {
    process.destroyForcibly();
    in.close();
  }
}
