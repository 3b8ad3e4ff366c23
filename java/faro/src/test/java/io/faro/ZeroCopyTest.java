package io.faro;

import static io.faro.Checks.failsBy;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Rows that are written and read in place: what this costs the heap, and how long a claim holds. */
@Timeout(60)
class ZeroCopyTest {
  private static final int WARMUP_ROWS = 50_000;
  private static final int ROWS = 100_000;
  private static final long NOISE_BYTES = 16 * 1024; // of all rows together: less than one bit each

  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  /** Moves one row on; false if there is nothing to do now. */
  private interface Step {
    boolean run(int row) throws Exception;
  }

  private static void nothingIsAllocatedBy(String what, Step step) throws Exception {
    long before = 0;
    long id = Thread.currentThread().getId();
    for (int row = 0; row < WARMUP_ROWS + ROWS; row++) {
      if (row == WARMUP_ROWS) {
        before = THREADS.getThreadAllocatedBytes(id);
      }
      while (!step.run(row)) {
        Thread.onSpinWait();
      }
    }
    long allocated = THREADS.getThreadAllocatedBytes(id) - before;
    assertTrue(allocated < NOISE_BYTES, what + ": " + allocated + " bytes for " + ROWS + " rows");
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void longsCostTheHeapNothing(String transport) throws Exception {
    try (Cluster cluster = new Cluster(transport, 2, 1)) {
      cluster.shuffle(cluster.spec(Long.BYTES, 0, 1), (worker, shuffle) -> {
        if (worker.number() == 0) {
          LongSender sender = shuffle.sender().longs();
          nothingIsAllocatedBy("send", row -> sender.send(0, row, Wait.NONE) == Outcome.DONE);
          shuffle.sender().finish();
        } else {
          Batch batch = shuffle.receiver().newBatch();
          int[] next = new int[1];
          nothingIsAllocatedBy(
              "poll",
              row -> {
                if (batch.isEmpty()) {
                  if (shuffle.receiver().receive(batch, Wait.NONE) != Outcome.DONE) {
                    return false;
                  }
                  next[0] = 0;
                }
                assertRow(row, batch.getLong(Long.BYTES * next[0]));
                if (++next[0] == batch.rowCount()) {
                  batch.release();
                }
                return true;
              });
          drain(shuffle);
        }
      });
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void rowsWithALengthEachCostTheHeapNothing(String transport) throws Exception {
    try (Cluster cluster = new Cluster(transport, 2, 1)) {
      cluster.shuffle(cluster.spec(0, 0, 1), (worker, shuffle) -> {
        if (worker.number() == 0) {
          RowWriter writer = shuffle.sender().rows();
          nothingIsAllocatedBy(
              "write",
              row -> {
                if (writer.claim(0, 40, Wait.NONE) != Outcome.DONE) {
                  return false;
                }
                writer.putLong(0, row);
                writer.commit(8 + row % 32);
                return true;
              });
          shuffle.sender().finish();
        } else {
          Batch batch = shuffle.receiver().newBatch();
          nothingIsAllocatedBy(
              "read",
              row -> {
                if (!batch.nextRow()) {
                  if (shuffle.receiver().receive(batch, Wait.NONE) != Outcome.DONE) {
                    return false;
                  }
                  batch.nextRow();
                }
                assertRow(row, batch.getLong(batch.rowOffset()));
                assertRow(8 + row % 32, batch.rowLength());
                return true;
              });
          drain(shuffle);
        }
      });
    }
  }

  // assertEquals boxes.
  private static void assertRow(long expected, long row) {
    if (expected != row) {
      throw new AssertionError("row " + row + " instead of " + expected);
    }
  }

  private static void drain(Shuffle shuffle) throws InterruptedException {
    assertEquals(Outcome.END_OF_STREAM, shuffle.receiver().receive(shuffle.receiver().newBatch()));
  }

  @Test
  void aClaimEndsWithTheCallOfTheConditionThatMadeIt() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 1);
        Shuffle shuffle = cluster.openShuffle(8)) {
      Worker worker = cluster.worker(0);
      RowWriter writer = shuffle.sender().rows();
      LongSender sender = shuffle.sender().longs();
      int[] calls = new int[1];
      worker.waitUntil(
          () -> {
            if (calls[0]++ == 0) {
              assertEquals(Outcome.DONE, writer.claim(0, 8, Wait.NONE));
              writer.putLong(0, 1);
              writer.commit(8);
              assertEquals(Outcome.DONE, writer.claim(0, 8, Wait.NONE));
              return false; // the worker may close the batch before it asks again
            }
            failsBy(Code.WRONG_STATE, () -> writer.commit(8));
            assertEquals(Outcome.DONE, sender.send(0, 2, Wait.NONE));
            return true;
          });
      assertEquals(Outcome.DONE, shuffle.sender().finish(Wait.NONE));
      Batch batch = shuffle.receiver().newBatch();
      for (long row = 1; row <= 2; ) {
        assertEquals(Outcome.DONE, shuffle.receiver().receive(batch));
        for (int i = 0; i < batch.rowCount(); i++) {
          assertEquals(row++, batch.getLong(8 * i));
        }
      }
      batch.release();
      drain(shuffle);
    }
  }
}
