package io.faro.bench;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/**
 * User and system time of all threads of this process, from the scheduler's own books: the JDK's
 * {@code getProcessCpuTime} counts in ticks of 10 ms. Of a thread that has ended, as the JVM's compilers
 * do when there is nothing to compile, what it had taken when it was last looked at.
 *
 * <p>Threads: one.
 */
final class CpuClock {
  private static final Path TASKS = Path.of("/proc/self/task");

  private final Map<Path, Long> taken = new HashMap<>(); // by thread

  long nanos() throws IOException {
    try (DirectoryStream<Path> tasks = Files.newDirectoryStream(TASKS)) {
      for (Path task : tasks) {
        taken.merge(task, nanosOf(task.resolve("schedstat")), Math::max);
      }
    }
    return taken.values().stream().mapToLong(Long::longValue).sum();
  }

  private static long nanosOf(Path schedstat) {
    try {
      String text = Files.readString(schedstat);
      return Long.parseLong(text.substring(0, text.indexOf(' ')));
    } catch (IOException ended) {
      return 0; // the thread has ended since the folder was read
    }
  }
}
