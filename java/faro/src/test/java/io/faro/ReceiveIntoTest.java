package io.faro;

import static io.faro.Checks.failsBy;
import static io.faro.Checks.inThread;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.IntFunction;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Rows that are larger than a frame, put together in memory of the caller's. */
@Timeout(60)
class ReceiveIntoTest {
  private static final int LARGE = 300_000; // larger than a ring

  private static byte[] row(int seed, int bytes) {
    byte[] row = new byte[bytes];
    new Random(seed).nextBytes(row);
    return row;
  }

  private static ByteBuffer aligned(int bytes) {
    return ByteBuffer.allocateDirect(bytes + 128).alignedSlice(64); // which cuts off at both ends
  }

  private static byte[] bytesOf(ByteBuffer memory, int count) {
    byte[] bytes = new byte[count];
    memory.get(memory.position(), bytes);
    return bytes;
  }

  private static void send(Shuffle shuffle, int receiver, byte[] row) throws InterruptedException {
    assertEquals(Outcome.DONE, shuffle.sender().send(receiver, row, 0, row.length));
  }

  @ParameterizedTest
  @ValueSource(strings = {"shm", "tcp"})
  void largeRowsLieInMemoryOfTheCallersAndStayThere(String transport) throws Exception {
    int[] lengths = {LARGE, 10, 70_000, LARGE + 1, 0};
    try (Cluster cluster = new Cluster(transport, 2, 1)) {
      List<List<ByteBuffer>> kept = List.of(new ArrayList<>(), new ArrayList<>());
      cluster.shuffle(0, (worker, shuffle) -> {
        int w = worker.number();
        for (int i = 0; i < lengths.length; i++) {
          send(shuffle, 1 - w, row(2 * i + w, lengths[i]));
        }
        assertEquals(Outcome.DONE, shuffle.sender().finish());
        List<ByteBuffer> given = new ArrayList<>();
        IntFunction<ByteBuffer> allocate = bytes -> {
          given.add(aligned(128 + bytes).position(64)); // more than it needs, and not from the beginning
          return given.get(given.size() - 1);
        };
        Batch batch = shuffle.receiver().newBatch();
        int next = 0;
        while (shuffle.receiver().receiveInto(batch, allocate) == Outcome.DONE) {
          while (batch.nextRow()) {
            byte[] row = new byte[batch.rowLength()];
            batch.getBytes(batch.rowOffset(), row, 0, row.length);
            assertArrayEquals(row(2 * next + 1 - w, lengths[next]), row);
            next++;
          }
          if (batch.memory() != null) {
            assertSame(given.get(kept.get(w).size()), batch.memory());
            batch.detach(); // takes nothing of overflow
            kept.get(w).add(batch.memory());
          }
        }
        assertEquals(lengths.length, next);
        assertNull(batch.memory());
        assertEquals(0, worker.session().metrics().workers().get(0).heldFrames());
      });
      for (int w = 0; w < 2; w++) { // the shuffle is closed
        assertEquals(3, kept.get(w).size());
        assertArrayEquals(row(1 - w, LARGE), bytesOf(kept.get(w).get(0), LARGE));
        assertArrayEquals(row(7 - w, LARGE + 1), bytesOf(kept.get(w).get(2), LARGE + 1));
      }
    }
  }

  private interface Task {
    void run(Shuffle shuffle, Batch batch) throws Exception;
  }

  /** A row of LARGE bytes has come to the only worker. */
  private static void withARow(Task task) throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 1);
        Shuffle shuffle = cluster.openShuffle(0)) {
      send(shuffle, 0, row(7, LARGE));
      task.run(shuffle, shuffle.receiver().newBatch());
      assertEquals(Outcome.DONE, shuffle.sender().finish());
    }
  }

  @Test
  void memoryThatCannotTakeTheRowIsRefusedByItsNameAndTheRowStays() throws Exception {
    Map<String, IntFunction<ByteBuffer>> refused =
        Map.of(
            "allocate gave no memory for a row of 300000 bytes", bytes -> null,
            "allocate gave a buffer that lies in the Java heap", ByteBuffer::allocate,
            "allocate gave a buffer that is only to be read", bytes -> aligned(bytes).asReadOnlyBuffer(),
            "allocate gave 299999 bytes for a row of 300000 bytes", bytes -> aligned(bytes).limit(bytes - 1),
            "allocate gave memory that is not aligned to 64 bytes", bytes -> aligned(bytes + 8).position(8));
    withARow((shuffle, batch) -> {
      refused.forEach((why, allocate) -> {
        failsBy(Code.INVALID_ARGUMENT, () -> shuffle.receiver().receiveInto(batch, allocate), why);
        failsBy(Code.INVALID_ARGUMENT, () -> shuffle.receiver().receiveInto(batch, allocate, Wait.NONE), why);
      });
      assertEquals(Outcome.DONE, shuffle.receiver().receiveInto(batch, ReceiveIntoTest::aligned));
      assertArrayEquals(row(7, LARGE), bytesOf(batch.memory(), LARGE));
    });
  }

  @Test
  void whatAllocateThrowsIsThrownOnAndTheRowStays() throws Exception {
    withARow((shuffle, batch) -> {
      IntFunction<ByteBuffer> fails = bytes -> {
        throw new IllegalStateException("no page");
      };
      for (Wait<?> wait : List.of(Wait.FOREVER, Wait.NONE)) {
        assertEquals("no page", assertThrows(IllegalStateException.class, () -> shuffle.receiver().receiveInto(batch, fails, wait)).getMessage());
      }
      assertTrue(batch.isEmpty());
      assertEquals(Outcome.DONE, shuffle.receiver().receive(batch), "a row that is received as any other");
      assertEquals(LARGE, batch.bytes());
      assertNull(batch.memory());
    });
  }

  @Test
  void allocateDoesNothingWithItsWorker() throws Exception {
    withARow((shuffle, batch) -> {
      IntFunction<ByteBuffer> allocate = bytes -> {
        String why = "worker 0 is receiving, and its function `allocate` must not use it";
        failsBy(Code.WRONG_STATE, () -> shuffle.receiver().receive(batch, Wait.NONE), why);
        failsBy(Code.WRONG_STATE, shuffle::close, why);
        failsBy(Code.WRONG_STATE, shuffle.worker()::releaseOwnership, why);
        return aligned(bytes);
      };
      assertEquals(Outcome.DONE, shuffle.receiver().receiveInto(batch, allocate));
      assertArrayEquals(row(7, LARGE), bytesOf(batch.memory(), LARGE));
      shuffle.sender().flush(); // the worker is its thread's again
    });
  }

  /** What was begun in memory of the caller's is handed out from there, whatever call does it. */
  @Test
  void aRowThatWasBegunInMemoryOfTheCallersIsHandedOutByAnyCall() throws Exception {
    try (Cluster cluster = new Cluster(1, 2, config -> config.set(Setting.RING_BYTES, "4KiB"))) {
      ShuffleSpec spec = cluster.spec(0, 0, 1);
      Shuffle receiving = inThread(() -> cluster.worker(1).openShuffle(spec));
      Shuffle sending = cluster.worker(0).openShuffle(spec);
      assertEquals(Outcome.DONE, sending.sender().send(0, row(7, LARGE), 0, LARGE, Wait.NONE)); // the ring has its first bytes
      sending.sender().flush();
      ByteBuffer[] given = {null};
      inThread(() -> {
        Batch batch = receiving.receiver().newBatch();
        assertEquals(Outcome.WOULD_WAIT, receiving.receiver().receiveInto(batch, bytes -> given[0] = aligned(bytes), Wait.NONE));
        return 0;
      });
      assertTrue(given[0] != null);
      var received = Checks.start(() -> {
        Batch batch = receiving.receiver().newBatch();
        assertEquals(Outcome.DONE, receiving.receiver().receive(batch));
        assertSame(given[0], batch.memory());
        return bytesOf(batch.memory(), LARGE);
      });
      assertEquals(Outcome.DONE, sending.sender().finish());
      assertArrayEquals(row(7, LARGE), received.get());
    }
  }
}
