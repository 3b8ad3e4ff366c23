package io.faro.bench;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * User and system time of all threads of this process, from the scheduler's own books: the JDK's
 * {@code getProcessCpuTime} counts in ticks of 10 ms.
 */
final class CpuClock {
  private static final Path TASKS = Path.of("/proc/self/task");

  private CpuClock() {}

  static long nanos() throws IOException {
    long sum = 0;
    try (DirectoryStream<Path> tasks = Files.newDirectoryStream(TASKS)) {
      for (Path task : tasks) {
        sum += nanosOf(task.resolve("schedstat"));
      }
    }
    return sum;
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
