package io.faro.flink.reliability;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;

/**
 * Opens many MiniClusters of two TaskManagers, one after the other, runs a job with an exchange between them, and closes them. Prints what
 * this process has, after some of them.
 *
 * <p>Arguments: how many clusters; after how many to print; then settings of Flink, {@code key=value}.
 */
public final class MiniClusters {
  private static final long RECORDS = 2000;

  private MiniClusters() {}

  /** Adds up what it sees. */
  private static final class Sum extends RichMapFunction<Long, Long> {
    private static final long serialVersionUID = 1;

    @Override
    public Long map(Long value) {
      getRuntimeContext().getLongCounter("sum").add(value);
      return value;
    }
  }

  /** Runs them. */
  public static void main(String[] arguments) throws Exception {
    int count = Integer.parseInt(arguments[0]);
    int step = Integer.parseInt(arguments[1]);
    Map<String, String> settings =
        new HashMap<>(
            Map.of(
                "jobmanager.scheduler", "Default",
                "rest.port", "0",
                "taskmanager.memory.network.min", "8m",
                "taskmanager.memory.network.max", "8m",
                "taskmanager.memory.managed.size", "8m"));
    for (int i = 2; i < arguments.length; i++) {
      String[] parts = arguments[i].split("=", 2);
      settings.put(parts[0], parts[1]);
    }
    Configuration configuration = Configuration.fromMap(settings);
    for (int i = 1; i <= count; i++) {
      run(configuration);
      if (i % step == 0) {
        print(i);
      }
    }
  }

  @SuppressWarnings({"deprecation", "try"}) // getJobGraph; MiniCluster.close
  private static void run(Configuration configuration) throws Exception {
    MiniClusterConfiguration two =
        new MiniClusterConfiguration.Builder()
            .setConfiguration(configuration)
            .setNumTaskManagers(2)
            .setNumSlotsPerTaskManager(1)
            .build();
    try (MiniCluster cluster = new MiniCluster(two)) {
      cluster.start();
      StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment(configuration);
      environment.setParallelism(2);
      environment
          .fromSequence(1, RECORDS)
          .keyBy(value -> value % 100)
          .map(new Sum())
          .sinkTo(new DiscardingSink<>());
      long sum =
          cluster.executeJobBlocking(environment.getStreamGraph().getJobGraph()).<Long>getAccumulatorResult("sum");
      if (sum != RECORDS * (RECORDS + 1) / 2) {
        throw new IllegalStateException("The sum is " + sum + ".");
      }
    }
  }

  private static void print(int clusters) throws IOException, InterruptedException, ReflectiveOperationException {
    collect();
    long metaspace = 0;
    for (MemoryPoolMXBean pool : ManagementFactory.getMemoryPoolMXBeans()) {
      metaspace += pool.getName().equals("Metaspace") ? pool.getUsage().getCommitted() : 0;
    }
    Object requested =
        Class.forName("io.faro.flink.ExchangeTotals").getMethod("subpartitionsRequested").invoke(null);
    System.out.printf(
        "after %d: descriptors %d threads %d mappings %d KiB %d metaspace %d heap %d requests %s%n",
        clusters,
        entries("/proc/self/fd"),
        entries("/proc/self/task"),
        Files.readAllLines(Path.of("/proc/self/maps")).size(),
        resident(),
        metaspace >> 10,
        ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed() >> 10,
        requested);
  }

  // An endpoint that was closed gives its descriptors back when it is collected.
  private static void collect() throws IOException, InterruptedException {
    long least = Long.MAX_VALUE;
    for (int same = 0; same < 3; ) {
      System.gc();
      Thread.sleep(500);
      long now = entries("/proc/self/fd");
      same = now < least ? 0 : same + 1;
      least = Math.min(least, now);
    }
  }

  private static long entries(String folder) throws IOException {
    try (Stream<Path> names = Files.list(Path.of(folder))) {
      return names.count();
    }
  }

  private static long resident() throws IOException {
    for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
      if (line.startsWith("VmRSS:")) {
        return Long.parseLong(line.replaceAll("\\D", ""));
      }
    }
    throw new IOException("/proc/self/status has no VmRSS.");
  }
}
