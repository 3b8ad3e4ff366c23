package io.faro.examples.flink;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Collection;

/**
 * What processes have taken of processors, in seconds.
 *
 * @param seconds of all their threads, those that have ended too, but the JVM's compilers
 * @param transportSeconds of the threads that only carry buffers: Netty's, Faro's I/O threads, and those of Faro's native library
 */
record ProcessTimes(double seconds, double transportSeconds) {
  private static final double TICKS_PER_SECOND = 100; // of /proc/<pid>/stat, on every Linux
  private static final int USER_TIME = 11; // place of the field behind the name in parentheses; system time is next

  /** Those of processes that run, since each began. */
  static ProcessTimes now(Collection<Long> pids) throws IOException {
    double all = 0;
    double transport = 0;
    for (long pid : pids) {
      Path process = Path.of("/proc", String.valueOf(pid));
      String stat = Files.readString(process.resolve("stat"), UTF_8);
      String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
      all += (Long.parseLong(fields[USER_TIME]) + Long.parseLong(fields[USER_TIME + 1])) / TICKS_PER_SECOND;
      try (DirectoryStream<Path> threads = Files.newDirectoryStream(process.resolve("task"))) {
        for (Path thread : threads) {
          String name = text(thread.resolve("comm")); // the first 15 characters
          if (name.startsWith("C1 Compiler") || name.startsWith("C2 Compiler")) {
            all -= seconds(thread);
          } else if (name.startsWith("Flink Netty") || name.startsWith("Faro I/O") || name.startsWith("faro")) {
            transport += seconds(thread);
          }
        }
      }
    }
    return new ProcessTimes(all, transport);
  }

  ProcessTimes since(ProcessTimes earlier) {
    return new ProcessTimes(seconds - earlier.seconds, transportSeconds - earlier.transportSeconds);
  }

  private static double seconds(Path thread) throws IOException {
    String times = text(thread.resolve("schedstat"));
    return times.isEmpty() ? 0 : Long.parseLong(times.substring(0, times.indexOf(' '))) / 1e9;
  }

  /** Nothing of a thread that has ended meanwhile. */
  private static String text(Path file) throws IOException {
    try {
      return Files.readString(file, UTF_8);
    } catch (NoSuchFileException ended) {
      return "";
    } catch (IOException ended) {
      if (Files.exists(file)) {
        throw ended;
      }
      return "";
    }
  }
}
