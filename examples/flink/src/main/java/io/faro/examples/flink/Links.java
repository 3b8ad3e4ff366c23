package io.faro.examples.flink;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;

/** Which links carry what, from Faro's counters, by {@code faro stat}. A link belongs to the TaskManager that consumes. */
final class Links {
  private record Carried(String transport, long bytes, long frames) {}

  private final Path command;
  private final LocalCluster cluster;

  Links(Path command, LocalCluster cluster) {
    this.command = command;
    this.cluster = cluster;
  }

  /** Prints what has come over each link since it was opened. */
  void print(PrintStream out) throws IOException, InterruptedException {
    if (!Files.isExecutable(command)) {
      out.println("Which links carry what: " + command + " is not built.");
      return;
    }
    Map<String, Carried> now = new LinkedHashMap<>();
    for (Map.Entry<String, Long> taskManager : cluster.taskManagers().entrySet()) {
      read(taskManager.getKey(), taskManager.getValue(), now);
    }
    now.forEach(
        (link, carried) ->
            out.printf(
                "%-32s %-5s %,13.1f KB in %,9d frames%n",
                link, carried.transport, carried.bytes / 1e3, carried.frames));
    List<String> absent = absent(now.keySet());
    if (!absent.isEmpty()) {
      out.println("No link, as no exchange went that way: " + String.join(", ", absent));
    }
  }

  // A TaskManager that consumes nothing of another one has none to it.
  private List<String> absent(Set<String> links) {
    List<String> absent = new ArrayList<>();
    for (String from : cluster.taskManagers().keySet()) {
      for (String to : cluster.taskManagers().keySet()) {
        String link = from + " -> " + to;
        if (!from.equals(to) && !links.contains(link)) {
          absent.add(link);
        }
      }
    }
    return absent;
  }

  private void read(String name, long pid, Map<String, Carried> links) throws IOException, InterruptedException {
    Process stat =
        new ProcessBuilder(
                command.toString(), "stat", "--pid", String.valueOf(pid), "--once", "--all", "--json", "--interval", "0.05")
            .redirectError(ProcessBuilder.Redirect.DISCARD)
            .start();
    JsonNode root = new ObjectMapper().readTree(stat.getInputStream());
    stat.waitFor();
    for (JsonNode endpoint : root.path("endpoints")) {
      for (JsonNode channel : endpoint.path("channels")) {
        if (channel.path("dialled").asBoolean()) {
          JsonNode incoming = channel.path("incoming");
          links.merge(
              channel.path("peer").asText() + " -> " + name,
              new Carried(
                  channel.path("transport").asText(),
                  incoming.path("bytes_received").asLong(),
                  incoming.path("frames_received").asLong()),
              (one, other) ->
                  new Carried(one.transport, one.bytes + other.bytes, one.frames + other.frames));
        }
      }
    }
  }
}
