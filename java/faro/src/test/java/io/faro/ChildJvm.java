package io.faro;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Scanner;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** Another JVM that runs the main method of a class, and is killed when this is closed, or after two minutes. */
final class ChildJvm implements AutoCloseable {
  private static final Scanner PLAN = new Scanner(System.in, UTF_8);

  private final Process process;
  private final PrintStream in;
  private final BufferedReader out;

  ChildJvm(Class<?> program, String... arguments) throws IOException {
    this(List.of(), program, arguments);
  }

  ChildJvm(List<String> before, Class<?> program, String... arguments) throws IOException {
    this(before, List.of("-Xmx64m"), program, arguments);
  }

  /**
   * @param before what comes before the JVM in its command line, and becomes the JVM: as `ip netns exec`
   * @param options of the JVM
   */
  ChildJvm(List<String> before, List<String> options, Class<?> program, String... arguments) throws IOException {
    List<String> command = new ArrayList<>(before);
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(options);
    command.addAll(List.of("-Xcheck:jni", "-cp", System.getProperty("java.class.path")));
    command.add(program.getName());
    command.addAll(List.of(arguments));
    process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    CompletableFuture.delayedExecutor(120, TimeUnit.SECONDS).execute(this::destroy);
    in = new PrintStream(process.getOutputStream(), true, UTF_8);
    out = new BufferedReader(new InputStreamReader(process.getInputStream(), UTF_8));
  }

  /**
   * Waits for the next line that it prints; null if it has ended.
   *
   * @throws AssertionError if the line is the JVM's, about what -Xcheck:jni has found
   */
  String line() throws IOException {
    String line = out.readLine();
    if (JniCheck.isComplaint(line)) {
      StringBuilder complaint = new StringBuilder(line);
      while (out.ready()) { // where that was
        complaint.append('\n').append(out.readLine());
      }
      throw new AssertionError(complaint);
    }
    return line;
  }

  /** Tells it a query: what {@link #readQuery} reads there. */
  void tell(QueryId query) {
    in.println(query.counter() + " " + query.incarnation() + " " + query.issuer());
  }

  /** Tells it a line: what {@link #readLine} reads there. */
  void tell(String line) {
    in.println(line);
  }

  /** In the other JVM. */
  static QueryId readQuery() {
    return new QueryId(PLAN.nextLong(), PLAN.nextLong(), PLAN.nextInt());
  }

  /** In the other JVM: the rest of a line, or of the line after it if nothing is left of this one. */
  static String readLine() {
    String rest = PLAN.nextLine();
    return rest.isEmpty() ? PLAN.nextLine() : rest;
  }

  /** Starts a dump of its heap into this file. */
  Process dumpHeap(Path file) throws IOException {
    return new ProcessBuilder(
            Path.of(System.getProperty("java.home"), "bin", "jcmd").toString(),
            Long.toString(process.pid()),
            "GC.heap_dump",
            "-overwrite=true",
            file.toString())
        .redirectErrorStream(true)
        .redirectOutput(ProcessBuilder.Redirect.DISCARD)
        .start();
  }

  /** Stops it as kill -STOP does: no thread of it runs until {@link #goOn}. */
  void stop() throws IOException, InterruptedException {
    signal("STOP");
  }

  void goOn() throws IOException, InterruptedException {
    signal("CONT");
  }

  private void signal(String name) throws IOException, InterruptedException {
    String pid = Long.toString(process.pid());
    if (new ProcessBuilder("kill", "-" + name, pid).inheritIO().start().waitFor() != 0) {
      throw new IOException("kill -" + name + " " + pid);
    }
  }

  /** Kills it as kill -9 does. Returns when it is gone. */
  void kill() {
    destroy();
    process.onExit().join();
  }

  /** Unlike Process.destroyForcibly it lets what was printed be read. */
  private void destroy() {
    process.toHandle().destroyForcibly();
  }

  /** Looks also at the lines that nobody has asked for. */
  @Override
  public void close() throws IOException {
    destroy();
    while (line() != null) {}
  }
}
