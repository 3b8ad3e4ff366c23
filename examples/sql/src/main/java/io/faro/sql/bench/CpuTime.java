package io.faro.sql.bench;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Predicate;

/**
 * User and system time of the threads of this process, from the scheduler's own books; of a thread that has ended,
 * what it had taken when it was last looked at. Threads: one.
 */
final class CpuTime {
  private static final Path TASKS = Path.of("/proc/self/task");
  private static final String FARO = "faro"; // how the names of Faro's own threads begin

  private final Map<Path, Long> taken = new HashMap<>(); // by thread, in ns
  private final Map<Path, String> names = new HashMap<>(); // the kernel's, of 15 characters

  /**
   * The CPU time of all threads but the JVM's compilers, in ns, so far: what these take depends on
   * how warm the JVM is.
   */
  long all() {
    return sum(name -> !isCompiler(name));
  }

  /** The CPU time of Faro's own threads, which carry and watch and are none of the JVM's. */
  long faro() {
    return sum(name -> name.startsWith(FARO));
  }

  static boolean isCompiler(String name) {
    return name.startsWith("C1 Compiler") || name.startsWith("C2 Compiler");
  }

  private long sum(Predicate<String> isWanted) {
    look();
    return taken.entrySet().stream()
        .filter(thread -> isWanted.test(names.get(thread.getKey())))
        .mapToLong(Map.Entry::getValue)
        .sum();
  }

  private void look() {
    try (DirectoryStream<Path> tasks = Files.newDirectoryStream(TASKS)) {
      for (Path task : tasks) {
        long nanos = nanos(task);
        taken.merge(task, nanos, Math::max);
        names.computeIfAbsent(task, name -> read(name.resolve("comm")).strip());
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
  static String read(Path file) {
    try {
      return Files.readString(file);
    } catch (IOException ended) {
      return "";
    }
  }
}
