package io.faro.flink.benchmark;

import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.BindException;
import java.net.ServerSocket;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.Collectors;
import org.apache.flink.configuration.Configuration;

/**
 * Runs one network benchmark of Flink for a number of rounds in this JVM, and prints as a line of JSON what each round took.
 *
 * <pre>
 * NetworkBenchmark throughput CHANNELS FLUSH_MS local|remote ROUNDS RECORDS KEY=VALUE ...
 * NetworkBenchmark latency    1        0        remote       ROUNDS RECORDS KEY=VALUE ...
 * </pre>
 *
 * The keys are Flink's. Each round is a given number of records, whose bytes are counted where they arrive: a wrong count ends the JVM
 * with code 1. Rounds begin when all threads of the round before are ready for another one.
 *
 * <p>Which shuffle service it is decides the agent that the JVM is started with.
 */
public final class NetworkBenchmark {
  // Below those that the system gives to clients.
  private static final int FIRST_PORT = 20_000;
  private static final int PORTS = 12_000;

  private NetworkBenchmark() {}

  /** Ends the JVM, whatever threads the benchmark leaves. */
  public static void main(String[] arguments) {
    try {
      Benchmark benchmark = arguments[0].equals("latency") ? new Latency() : new Throughput();
      benchmark.setUp(
          Integer.parseInt(arguments[1]),
          Integer.parseInt(arguments[2]),
          arguments[3].equals("local"),
          configuration(arguments));
      System.out.println(run(benchmark, Integer.parseInt(arguments[4]), Long.parseLong(arguments[5])));
      System.exit(0);
    } catch (Throwable failed) {
      failed.printStackTrace();
      System.exit(1);
    }
  }

  // Faro takes its ports from there, Netty lets the system choose.
  private static Configuration configuration(String[] arguments) throws IOException {
    Configuration configuration = new Configuration();
    configuration.setString("taskmanager.data.bind-port", freePort() + "," + freePort() + "," + freePort());
    for (int i = 6; i < arguments.length; i++) {
      String[] pair = arguments[i].split("=", 2);
      configuration.setString(pair[0], pair[1]);
    }
    return configuration;
  }

  private static int freePort() throws IOException {
    Random random = new Random();
    while (true) {
      try (ServerSocket socket = new ServerSocket(FIRST_PORT + random.nextInt(PORTS))) {
        return socket.getLocalPort();
      } catch (BindException taken) {
        // the next
      }
    }
  }

  private static String run(Benchmark benchmark, int rounds, long records) throws Exception {
    OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    List<String> results = new ArrayList<>();
    long count = 0;
    for (int round = 0; round < rounds; round++) {
      benchmark.awaitReady();
      long bytes = benchmark.bytesIn();
      long ofThreads = TransportThreads.cpuTime();
      long cpu = system.getProcessCpuTime();
      long start = System.nanoTime();
      long sent = benchmark.round(records);
      long took = System.nanoTime() - start;
      cpu = system.getProcessCpuTime() - cpu;
      ofThreads = TransportThreads.cpuTime() - ofThreads;
      bytes = benchmark.bytesIn() - bytes;
      if (bytes != sent * Benchmark.RECORD_BYTES) {
        throw new IllegalStateException(bytes + " bytes have arrived of " + sent + " records of " + Benchmark.RECORD_BYTES);
      }
      count += sent;
      results.add(
          "{\"records\": " + sent + ", \"seconds\": " + took / 1e9 + ", \"cpu_seconds\": " + cpu / 1e9
              + ", \"transport_cpu_seconds\": " + ofThreads / 1e9 + benchmark.more() + "}");
    }
    return "{\"verified\": true, \"count\": " + count + ", \"received_over_faro\": " + receivedOverFaro() + ", \"rounds\": "
        + results.stream().collect(Collectors.joining(", ", "[", "]")) + "}";
  }

  private static long receivedOverFaro() throws ReflectiveOperationException {
    return (long) Class.forName("io.faro.flink.ExchangeTotals").getMethod("bytesReceived").invoke(null);
  }
}
