package io.faro.bench;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.util.HashMap;
import java.util.Map;

/**
 * User and system time of all threads of this process, from the scheduler's own books: the JDK's
 * {@code getProcessCpuTime} counts in ticks of 10 ms. Of a thread that has ended, as the JVM's compilers
 * do when there is nothing to compile, what it had taken when it was last looked at. A look is short: it is
 * part of what is measured.
 *
 * <p>Threads: one.
 */
final class CpuClock {
  private static final File TASKS = new File("/proc/self/task");

  private final Map<String, Task> tasks = new HashMap<>();
  private final byte[] text = new byte[64];

  private static final class Task {
    RandomAccessFile schedstat; // null: the thread has ended
    long taken;
  }

  long nanos() throws IOException {
    String[] running = TASKS.list();
    if (running == null) {
      throw new IOException(TASKS + " cannot be read");
    }
    for (String number : running) {
      look(tasks.computeIfAbsent(number, unknown -> new Task()), number);
    }
    long sum = 0;
    for (Task task : tasks.values()) {
      sum += task.taken;
    }
    return sum;
  }

  private void look(Task task, String number) throws IOException {
    try {
      if (task.schedstat == null) {
        task.schedstat = new RandomAccessFile(TASKS + "/" + number + "/schedstat", "r");
      }
      task.schedstat.seek(0);
      task.taken = Math.max(task.taken, firstNumber(task.schedstat.read(text)));
    } catch (IOException ended) {
      // The thread has ended since the folder was read. Its number may be another one's later.
      if (task.schedstat != null) {
        task.schedstat.close();
        task.schedstat = null;
      }
    }
  }

  private long firstNumber(int bytes) {
    long number = 0;
    for (int i = 0; i < bytes && text[i] != ' '; i++) {
      number = 10 * number + text[i] - '0';
    }
    return number;
  }
}
