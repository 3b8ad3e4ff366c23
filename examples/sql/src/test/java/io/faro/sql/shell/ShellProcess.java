package io.faro.sql.shell;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The shell as a user starts it, with the processes that it starts. */
public final class ShellProcess implements AutoCloseable {
  private static final Pattern PIDS = Pattern.compile("the query runs in processes \\[(.*)\\]");

  /** What -Xcheck:jni finds, here and in the nodes, which get the flag from the shell. */
  private static final Pattern JNI_COMPLAINT =
      Pattern.compile("(WARNING|FATAL ERROR) in native method|JNI local refs: ");

  private static final int LIMIT_S = Integer.getInteger("faro.test.line_limit_s", 120); // on a busy machine: more

  private final Process process;
  private final PrintStream in;
  private final BufferedReader out;
  private final StringBuilder seen = new StringBuilder();

  public ShellProcess(String... arguments) throws IOException {
    // A JVM does not hear of a Ctrl-C that it was born to ignore, as whatever a script starts in the background.
    List<String> command = new ArrayList<>(List.of("env", "--default-signal=INT"));
    command.addAll(jvm(Shell.class, "-Xcheck:jni"));
    command.addAll(List.of(arguments));
    process = new ProcessBuilder(command).redirectErrorStream(true).start();
    in = new PrintStream(process.getOutputStream(), true, UTF_8);
    out = new BufferedReader(new InputStreamReader(process.getInputStream(), UTF_8));
  }

  /** The command line of a small JVM for this program. */
  public static List<String> jvm(Class<?> program, String... flags) {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
        .filter(argument -> argument.startsWith("--enable-native-access"))
        .forEach(command::add);
    command.addAll(List.of(flags));
    command.addAll(List.of("-Xmx160m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"));
    command.addAll(List.of("-cp", System.getProperty("java.class.path"), program.getName()));
    return command;
  }

  public void type(String line) {
    in.println(line);
  }

  /** The next line with this in it; fails, showing all that was printed, if there is none. */
  public String expect(String part) throws IOException {
    CompletableFuture<Void> limit =
        CompletableFuture.runAsync(this::kill, CompletableFuture.delayedExecutor(LIMIT_S, TimeUnit.SECONDS));
    for (String line = readLine(); line != null; line = readLine()) {
      if (line.contains(part)) {
        limit.cancel(false);
        return line;
      }
    }
    throw new AssertionError("no line with '" + part + "' in what the shell printed:\n" + seen);
  }

  private String readLine() throws IOException {
    String line = out.readLine();
    if (line != null) {
      seen.append(line).append('\n');
      if (JNI_COMPLAINT.matcher(line).find()) {
        throw new AssertionError("-Xcheck:jni found, last in:\n" + seen);
      }
    }
    return line;
  }

  /** Waits until the shell says which processes run a query. */
  public List<Long> expectPids() throws IOException {
    Matcher pids = PIDS.matcher(expect("the query runs in processes"));
    if (!pids.matches()) {
      throw new AssertionError(seen);
    }
    return Pattern.compile(", ").splitAsStream(pids.group(1)).map(Long::valueOf).toList();
  }

  /** Does what Ctrl-C at a terminal does: the signal reaches all processes. */
  void interrupt() throws IOException, InterruptedException {
    signal("INT", process.pid());
    for (ProcessHandle child : process.children().toList()) {
      signal("INT", child.pid());
    }
  }

  public static void signal(String name, long pid) throws IOException, InterruptedException {
    new ProcessBuilder("kill", "-" + name, Long.toString(pid)).inheritIO().start().waitFor();
  }

  /** Its exit status, after all that was typed. */
  int end() throws IOException, InterruptedException {
    in.close();
    while (readLine() != null) {} // until the last of its processes has ended
    return process.waitFor();
  }

  private void kill() {
    List<ProcessHandle> children = process.children().toList();
    process.toHandle().destroyForcibly(); // what was printed can still be read
    children.forEach(ProcessHandle::destroyForcibly);
  }

  /** Looks also at the lines that nobody has asked for. */
  @Override
  public void close() throws IOException {
    kill();
    process.onExit().join();
    while (readLine() != null) {}
  }
}
