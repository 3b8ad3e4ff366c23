package io.faro.bench;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.StringJoiner;
import java.util.stream.Collectors;

/** The figures of a run over all nodes, as one line of JSON. */
final class Result {
  private Result() {}

  /** {@code transports} to the other nodes from this one. */
  static String json(Options options, NodeReport[] nodes, List<String> transports) {
    TwoStageJob job = options.job();
    int rounds = options.rounds();
    double[] seconds = new double[rounds];
    double[] cpuPerHop = new double[rounds];
    long expected = job.expectedChecksum();
    boolean verified = true;
    StringJoiner each = new StringJoiner(",", "[", "]");
    for (int i = 0; i < rounds; i++) {
      long longest = 0;
      long cpu = 0;
      long count = 0;
      long checksum = 0;
      for (NodeReport node : nodes) {
        NodeReport.RoundReport round = node.rounds().get(i);
        longest = Math.max(longest, round.elapsedNanos());
        cpu += round.cpuNanos();
        count += round.count();
        checksum += round.checksum();
      }
      seconds[i] = longest * 1e-9;
      cpuPerHop[i] = (double) cpu / job.hopCount();
      verified &= count == job.rowCount() && checksum == expected;
      each.add(
          String.format(
              Locale.ROOT,
              "{\"seconds\":%.6f,\"cpu_seconds\":%.6f,\"count\":%d,\"checksum\":%s}",
              seconds[i], cpu * 1e-9, count, Long.toUnsignedString(checksum)));
    }
    int warm = Math.min(options.warmup(), rounds - 1);
    return String.format(
        Locale.ROOT,
        "{\"language\":\"java\",\"java\":\"%s\",\"carrier\":\"%s\",\"level\":\"%s\",\"processes\":%d,\"workers\":%d,"
            + "\"rows\":%d,\"hash\":\"%s\",\"verified\":%b,\"connect_seconds\":%.4f,"
            + "\"cold\":{\"seconds\":%.4f,\"cpu_ns_per_hop\":%.3f},"
            + "\"warm\":{\"seconds\":%.4f,\"cpu_ns_per_hop\":%.3f},"
            + "\"transports\":[%s],\"rounds\":%s}",
        Runtime.version(), options.transport(), options.level().name().toLowerCase(Locale.ROOT), job.processes(), job.workersPerProcess(),
        job.rowsPerProcess(), job.partition().name().toLowerCase(Locale.ROOT), verified,
        Arrays.stream(nodes).mapToLong(NodeReport::connectNanos).max().orElse(0) * 1e-9,
        seconds[0], cpuPerHop[0], median(seconds, warm), median(cpuPerHop, warm),
        transports.stream().map(name -> '"' + name + '"').collect(Collectors.joining(",")), each);
  }

  private static double median(double[] values, int from) {
    double[] sorted = Arrays.copyOfRange(values, from, values.length);
    Arrays.sort(sorted);
    return (sorted[(sorted.length - 1) / 2] + sorted[sorted.length / 2]) / 2;
  }
}
