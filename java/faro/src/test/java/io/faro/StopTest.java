package io.faro;

import static io.faro.Checks.drainLongs;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.FileInputStream;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A JVM whose Java threads all stand still for longer than the time limit of liveness: its heartbeats
 * come from a native thread, and nobody takes it for lost.
 *
 * <p>The stop is a heap dump into a pipe that nobody reads for so long: it is written at a safepoint.
 * {@code -Dfaro.test.stop.seconds} makes it longer.
 */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD) // opening a pipe cannot be interrupted
class StopTest {
  private static final long STOP_SECONDS = Long.getLong("faro.test.stop.seconds", 3);
  private static final int LIVENESS_MILLIS = 1000;
  private static final int ROWS = 1000;

  @TempDir Path folder;

  private static SessionConfig config(int node, String nodes, String transport) {
    return Cluster.config(node, List.of(nodes.split(",")))
        .set(Setting.TRANSPORT, transport)
        .set(Setting.LIVENESS_TIMEOUT_MS, LIVENESS_MILLIS)
        .build();
  }

  private static ShuffleSpec fromNode1(QueryId query) {
    return new ShuffleSpec(query, 1, 8, new int[] {1}, new int[] {0});
  }

  /** Node 1, in a JVM of its own: sends a row, stops, and sends the others. */
  public static final class Stopping {
    private static volatile long longestGapNanos;

    public static void main(String[] arguments) throws Exception {
      try (Session session = Session.open(config(1, arguments[0], arguments[1]))) {
        QueryId query = ChildJvm.readQuery();
        Worker worker = session.workers().get(0);
        Shuffle shuffle = worker.openShuffle(fromNode1(query));
        LongSender sender = shuffle.sender().longs();
        sender.send(0, 0);
        shuffle.sender().flush();
        Thread clock = new Thread(Stopping::measureGaps);
        clock.setDaemon(true);
        clock.start();
        ChildJvm.readQuery(); // told after the stop
        for (long i = 1; i < ROWS; i++) {
          sender.send(0, i);
        }
        shuffle.sender().finish();
        shuffle.close();
        worker.endQuery(query);
        System.out.println(longestGapNanos);
      }
    }

    private static void measureGaps() {
      for (long last = System.nanoTime(); ; ) {
        LockSupport.parkNanos(1_000_000);
        long now = System.nanoTime();
        longestGapNanos = Math.max(longestGapNanos, now - last);
        last = now;
      }
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void aJvmThatStandsStillIsNotLost(String transport) throws Exception {
    Path pipe = folder.resolve("heap.hprof");
    assertEquals(0, new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor());
    String nodes = String.join(",", Cluster.heldAddresses(2));
    try (ChildJvm other = new ChildJvm(Stopping.class, nodes, transport);
        Session session = Session.open(config(0, nodes, transport))) {
      QueryId query = session.beginQuery();
      other.tell(query);
      Worker worker = session.workers().get(0);
      try (Shuffle shuffle = worker.openShuffle(fromNode1(query));
          Batch batch = shuffle.receiver().newBatch()) {
        assertEquals(Outcome.DONE, shuffle.receiver().receive(batch));
        assertEquals(0, batch.getLong(0));
        batch.release();
        Process jcmd = other.dumpHeap(pipe);
        try (InputStream dump = new FileInputStream(pipe.toFile())) {
          assertTrue(dump.read() >= 0);
          // It stands still now. If it was taken for lost, this would throw.
          assertEquals(Outcome.DEADLINE, shuffle.receiver().receive(batch, Wait.atMost(Duration.ofSeconds(STOP_SECONDS))));
          dump.transferTo(OutputStream.nullOutputStream());
        }
        assertEquals(0, jcmd.waitFor());
        other.tell(query);
        long[] next = {1};
        drainLongs(shuffle, row -> assertEquals(next[0]++, row));
        assertEquals(ROWS, next[0]);
      }
      worker.endQuery(query);
      double stopped = Long.parseLong(other.line()) * 1e-9;
      System.out.println(transport + ": all Java threads of a node stood still for " + stopped + " s");
      assumeTrue(
          stopped > LIVENESS_MILLIS * 2e-3,
          "this JVM dumps its heap without standing still: " + stopped + " s");
    }
  }
}
