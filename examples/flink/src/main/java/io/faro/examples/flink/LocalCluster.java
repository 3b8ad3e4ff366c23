package io.faro.examples.flink;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.GlobalConfiguration;

/**
 * A JobManager and TaskManagers, a process each, with what Flink's scripts would give them. They end with this process, however
 * it ends but by SIGKILL, and where Linux's {@code setpriv} is installed then, too.
 *
 * <p>Threads: one at a time. {@link #start} blocks until all TaskManagers have registered.
 */
final class LocalCluster implements AutoCloseable {
  private static final long END_MS = 2_000; // then a process is killed
  private static final long POLL_MS = 200;
  private static final Pattern REGISTERED = Pattern.compile("\"taskmanagers\":(\\d+)");
  private static final List<String> OPENED =
      List.of(
          "lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "text", "time", "util", "util.concurrent",
          "util.concurrent.atomic", "util.concurrent.locks");

  private final ClusterOptions options;
  private final Path folder;
  private final int rpcPort;
  private final int restPort;
  private final List<Socket> held = new ArrayList<>();
  private final Map<String, Process> processes = new LinkedHashMap<>();
  private final HttpClient http = HttpClient.newHttpClient();
  private final Thread atExit = new Thread(this::endAll);

  LocalCluster(ClusterOptions options) throws IOException {
    this.options = options;
    folder = options.folder().resolve("run-" + ProcessHandle.current().pid());
    rpcPort = hold();
    restPort = hold();
  }

  /** A port that the system gives to nobody else until the JobManager listens there, which may, as the socket here does not. */
  private int hold() throws IOException {
    Socket socket = new Socket();
    held.add(socket);
    socket.setReuseAddress(true);
    socket.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
    return socket.getLocalPort();
  }

  /** The configuration of a client that submits jobs to it. */
  Configuration clientConfiguration() {
    // The planner has to know the scheduler, which is set there.
    Configuration configuration = GlobalConfiguration.loadConfiguration(options.conf().toString());
    configuration.setString("execution.target", "remote");
    configuration.setString("rest.port", String.valueOf(restPort));
    configuration.setString("parallelism.default", String.valueOf(options.parallelism()));
    options.settings.forEach(configuration::setString);
    return configuration;
  }

  /** The names of the TaskManagers, with their processes. */
  Map<String, Long> taskManagers() {
    Map<String, Long> pids = new LinkedHashMap<>();
    processes.forEach(
        (name, process) -> {
          if (name.startsWith("taskmanager")) {
            pids.put(name, process.pid());
          }
        });
    return pids;
  }

  /**
   * @throws IOException if a process has ended, or not all have registered in time; with the last of its log
   */
  void start() throws IOException, InterruptedException {
    Runtime.getRuntime().addShutdownHook(atExit);
    Files.createDirectories(folder.resolve("tmp"));
    start(
        "jobmanager",
        List.of("-Xmx512m"),
        "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint",
        Map.of());
    for (int i = 1; i <= options.taskManagers; i++) {
      String name = "taskmanager-" + i;
      start(
          name,
          List.of("-Xmx512m", "-XX:MaxDirectMemorySize=256m"),
          "org.apache.flink.runtime.taskexecutor.TaskManagerRunner",
          Map.of(
              "taskmanager.resource-id", name,
              "taskmanager.host", options.host(i - 1),
              "taskmanager.bind-host", options.host(i - 1)));
    }
    awaitAll();
  }

  private void start(String name, List<String> memory, String entryPoint, Map<String, String> settings) throws IOException {
    List<String> command = new ArrayList<>();
    if (Files.isExecutable(Path.of("/usr/bin/setpriv"))) {
      command.addAll(List.of("/usr/bin/setpriv", "--pdeathsig", "KILL"));
    }
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(memory);
    command.add("-Dlog4j.configurationFile=" + options.conf().resolve("log4j2.properties"));
    OPENED.forEach(each -> command.add("--add-opens=java.base/java." + each + "=ALL-UNNAMED"));
    command.addAll(List.of("-cp", System.getProperty("java.class.path"), entryPoint, "--configDir", options.conf().toString()));
    Map<String, String> all = new LinkedHashMap<>(settings);
    all.putAll(settings());
    all.forEach((key, value) -> command.addAll(List.of("-D", key + "=" + value)));
    ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log(name).toFile());
    builder.environment().put("FLINK_CONF_DIR", options.conf().toString());
    processes.put(name, builder.start());
  }

  private Path log(String name) {
    return folder.resolve(name + ".log");
  }

  private Map<String, String> settings() {
    Map<String, String> settings = new LinkedHashMap<>();
    settings.put("jobmanager.rpc.port", String.valueOf(rpcPort));
    settings.put("rest.port", String.valueOf(restPort));
    settings.put("rest.bind-port", String.valueOf(restPort));
    settings.put("taskmanager.numberOfTaskSlots", String.valueOf(options.slots));
    settings.put("parallelism.default", String.valueOf(options.parallelism()));
    settings.put("io.tmp.dirs", folder.resolve("tmp").toString());
    if (!options.isNetty) {
      settings.put("shuffle-service-factory.class", "io.faro.flink.FaroShuffleServiceFactory");
    }
    settings.putAll(options.settings);
    return settings;
  }

  private void awaitAll() throws IOException, InterruptedException {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(options.startSeconds);
    while (registered() < options.taskManagers) {
      check();
      if (System.nanoTime() > end) {
        throw new IOException(
            "Only " + registered() + " TaskManagers have registered in " + options.startSeconds + " s: " + folder);
      }
      Thread.sleep(POLL_MS);
    }
  }

  /**
   * @throws IOException if a process has ended
   */
  void check() throws IOException {
    for (Map.Entry<String, Process> each : processes.entrySet()) {
      if (!each.getValue().isAlive()) {
        List<String> lines = Files.readAllLines(log(each.getKey()));
        throw new IOException(
            each.getKey() + " has ended with " + each.getValue().exitValue() + ". The last of " + log(each.getKey()) + ":\n"
                + String.join("\n", lines.subList(Math.max(0, lines.size() - 20), lines.size())));
      }
    }
  }

  private int registered() throws InterruptedException {
    try {
      HttpRequest request =
          HttpRequest.newBuilder(URI.create("http://localhost:" + restPort + "/overview"))
              .timeout(Duration.ofSeconds(5))
              .build();
      String answer = http.send(request, HttpResponse.BodyHandlers.ofString()).body();
      Matcher found = REGISTERED.matcher(answer);
      return found.find() ? Integer.parseInt(found.group(1)) : 0;
    } catch (IOException notYet) {
      return 0;
    }
  }

  /** Ends all processes, and removes their temporary files; logs stay. */
  @Override
  public void close() {
    endAll();
    remove(folder.resolve("tmp"));
    for (Socket each : held) {
      try {
        each.close();
      } catch (IOException ignored) {
        // It was never connected.
      }
    }
    try {
      Runtime.getRuntime().removeShutdownHook(atExit);
    } catch (IllegalStateException exiting) {
      // The hook does the same.
    }
  }

  private static void remove(Path tree) {
    try (Stream<Path> files = Files.walk(tree)) {
      files.sorted(Comparator.reverseOrder()).forEach(each -> each.toFile().delete());
    } catch (IOException left) {
      System.err.println("Not removed: " + tree + ", " + left.getMessage());
    }
  }

  private void endAll() {
    processes.values().forEach(Process::destroy);
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(END_MS);
    for (Process process : processes.values()) {
      try {
        process.waitFor(Math.max(0, end - System.nanoTime()), TimeUnit.NANOSECONDS);
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
      }
      process.destroyForcibly();
    }
  }
}
