package io.faro.sql;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/**
 * User and system time of the threads of this process, from the scheduler's own books; of a thread that has ended,
 * what it had taken when it was last looked at. Threads: one.
 */
final class CpuTime {
  private static final Path TASKS = Path.of("/proc/self/task");
  private static final String FARO = "faro"; // how the names of Faro's own threads begin

  private final Map<Path, Long> taken = new HashMap<>(); // by thread, in ns
  private final Map<Path, Boolean> isFaro = new HashMap<>();

  /** Of all threads, in ns, so far. */
  long all() {
    look();
    return taken.values().stream().mapToLong(Long::longValue).sum();
  }

  /** Of Faro's own threads, which carry and watch and are none of the JVM's. */
  long faro() {
    look();
    return taken.entrySet().stream().filter(e -> isFaro.get(e.getKey())).mapToLong(Map.Entry::getValue).sum();
  }

  private void look() {
    try (DirectoryStream<Path> tasks = Files.newDirectoryStream(TASKS)) {
      for (Path task : tasks) {
        long nanos = nanos(task);
        taken.merge(task, nanos, Math::max);
        isFaro.computeIfAbsent(task, name -> read(name.resolve("comm")).startsWith(FARO));
      }
    } catch (IOException problem) {
      throw new UncheckedIOException(problem);
    }
  }

  private static long nanos(Path task) {
    String text = read(task.resolve("schedstat"));
    return text.isEmpty() ? 0 : Long.parseLong(text.substring(0, text.indexOf(' ')));
  }

  /** Empty if the thread has ended since the folder was read. */
  private static String read(Path file) {
    try {
      return Files.readString(file);
    } catch (IOException ended) {
      return "";
    }
  }
}
