package io.faro.flink.benchmark;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;

/** The threads of this process that only carry buffers: Netty's, Faro's I/O threads, and those of Faro's native library. */
final class TransportThreads {
  private static final Path TASKS = Path.of("/proc/self/task");

  private TransportThreads() {}

  /** What those that live now have taken of processors, in ns. */
  static long cpuTime() throws IOException {
    long sum = 0;
    try (DirectoryStream<Path> tasks = Files.newDirectoryStream(TASKS)) {
      for (Path task : tasks) {
        try {
          String name = Files.readString(task.resolve("comm"), UTF_8); // the first 15 characters
          if (name.startsWith("Flink Netty") || name.startsWith("Faro I/O") || name.startsWith("faro")) {
            String times = Files.readString(task.resolve("schedstat"), UTF_8);
            sum += Long.parseLong(times.substring(0, times.indexOf(' ')));
          }
        } catch (IOException ended) {
          // The thread is no more.
        }
      }
    }
    return sum;
  }
}
