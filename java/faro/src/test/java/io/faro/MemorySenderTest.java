package io.faro;

import static io.faro.Checks.drain;
import static io.faro.Checks.failsBy;
import static io.faro.Checks.inThread;
import static io.faro.Checks.received;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.FutureTask;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Many rows that lie in native memory, by a vector of receivers, by offsets, by a key. */
@Timeout(60)
class MemorySenderTest {
  private static final int BEGIN = 3; // rows stand in their buffer behind its beginning, and are not aligned

  private static ByteBuffer direct(int bytes) {
    return ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
  }

  /** The address of row 0 of a buffer, as a MemorySegment tells it. */
  private static long address(Buffer buffer, int elementBytes) {
    return NativeMemory.address(buffer) + (long) buffer.position() * elementBytes;
  }

  /** Rows of many lengths, and where they go, in all forms that are sent. */
  private static final class Rows {
    final List<byte[]> rows = new ArrayList<>();
    final ByteBuffer bytes;
    final IntBuffer receivers; // its position is not 0
    final IntBuffer offsets;
    final LongBuffer wideOffsets;

    /** {@code rowBytes} 0: a length each, with some rows larger than a frame. */
    Rows(int seed, int count, int rowBytes, int receiverCount) {
      Random random = new Random(seed);
      receivers = direct(4 * (count + 1)).asIntBuffer().position(1);
      offsets = direct(4 * (count + 1)).asIntBuffer();
      wideOffsets = direct(8 * (count + 2)).asLongBuffer().position(1);
      int at = 0;
      for (int i = 0; i < count; i++) {
        int length = rowBytes != 0 ? rowBytes : random.nextInt(i % 100 == 99 ? 10_000 : 150);
        byte[] row = new byte[length];
        random.nextBytes(row);
        rows.add(row);
        receivers.put(1 + i, random.nextInt(receiverCount));
        offsets.put(i, at);
        wideOffsets.put(1 + i, at);
        at += length;
      }
      offsets.put(count, at);
      wideOffsets.put(1 + count, at);
      bytes = direct(BEGIN + at).position(BEGIN);
      rows.forEach(bytes::put);
      bytes.position(BEGIN);
    }

    int count() {
      return rows.size();
    }

    int receiver(int row) {
      return receivers.get(1 + row);
    }

    void checkUntouched() {
      assertEquals(List.of(BEGIN, 1, 0, 1), List.of(bytes.position(), receivers.position(), offsets.position(), wideOffsets.position()));
    }
  }

  /** One way to send rows from … to-1. */
  private interface Way {
    int send(MemorySender sender, Rows rows, int from, int to) throws Exception;
  }

  static Stream<Named<Way>> waysOfFixedWidth() {
    return Stream.of(
        Named.of("buffers", (sender, rows, from, to) -> sender.sendRows(rows.bytes, from, to, rows.receivers)),
        Named.of(
            "addresses",
            (sender, rows, from, to) ->
                sender.sendRows(
                    address(rows.bytes, 1), rows.bytes.remaining(), from, to, address(rows.receivers, 4), Wait.FOREVER)));
  }

  static Stream<Named<Way>> waysByOffsets() {
    return Stream.of(
        Named.of("32 bits", (sender, rows, from, to) -> sender.sendRows(rows.bytes, rows.offsets, from, to, rows.receivers)),
        Named.of("64 bits", (sender, rows, from, to) -> sender.sendRows(rows.bytes, rows.wideOffsets, from, to, rows.receivers)),
        Named.of(
            "32 bits, addresses",
            (sender, rows, from, to) ->
                sender.sendRows(
                    address(rows.bytes, 1),
                    rows.bytes.remaining(),
                    address(rows.offsets, 4),
                    4,
                    from,
                    to,
                    address(rows.receivers, 4),
                    Wait.FOREVER)),
        Named.of(
            "64 bits, addresses",
            (sender, rows, from, to) ->
                sender.sendRows(
                    address(rows.bytes, 1),
                    rows.bytes.remaining(),
                    address(rows.wideOffsets, 8),
                    8,
                    from,
                    to,
                    address(rows.receivers, 4),
                    Wait.FOREVER)));
  }

  /** All workers send to all in two calls, and receive what was sent to them, by Batch.offsets. */
  private static void carries(Way way, int rowBytes, int count) throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 3)) {
      cluster.shuffle(rowBytes, (worker, shuffle) -> {
        Rows rows = new Rows(worker.number(), count, rowBytes, 3);
        MemorySender sender = shuffle.sender().memory();
        int half = count / 2 + 1;
        assertEquals(half, way.send(sender, rows, 0, half));
        assertEquals(half, sender.taken());
        assertEquals(count - half, way.send(sender, rows, half, count));
        assertEquals(Outcome.DONE, sender.stoppedBy());
        assertEquals(0, way.send(sender, rows, count, count));
        rows.checkUntouched();
        assertEquals(Outcome.DONE, shuffle.sender().finish());

        List<List<byte[]>> got = List.of(new ArrayList<>(), new ArrayList<>(), new ArrayList<>());
        drain(shuffle, batch -> {
          int before = batch.rowBytes() == 0 ? 4 : 0;
          int[] offsets = new int[batch.rowCount() + 1];
          assertEquals(batch.rowCount(), batch.offsets(offsets));
          assertEquals(batch.bytes(), offsets[batch.rowCount()]);
          for (int i = 0; i < batch.rowCount(); i++) {
            byte[] row = new byte[offsets[i + 1] - offsets[i] - before];
            batch.getBytes(offsets[i] + before, row, 0, row.length);
            got.get(batch.sender()).add(row);
          }
        });
        for (int from = 0; from < 3; from++) {
          Rows sent = new Rows(from, count, rowBytes, 3);
          List<byte[]> next = got.get(from);
          int at = 0;
          for (int i = 0; i < count; i++) {
            if (sent.receiver(i) == worker.number()) {
              assertArrayEquals(sent.rows.get(i), next.get(at++));
            }
          }
          assertEquals(at, next.size());
        }
      });
    }
  }

  @ParameterizedTest
  @MethodSource("waysOfFixedWidth")
  void rowsOfAFixedWidthGoToTheReceiversThatAreNamed(Way way) throws Exception {
    for (int rowBytes : new int[] {1, 8, 30, 6000}) {
      carries(way, rowBytes, rowBytes > 1000 ? 200 : 5000);
    }
  }

  @ParameterizedTest
  @MethodSource("waysByOffsets")
  void rowsByOffsetsGoToTheReceiversThatAreNamed(Way way) throws Exception {
    carries(way, 0, 5000);
  }

  @ParameterizedTest
  @EnumSource(Partition.class)
  void rowsGoWhereTheirKeyBelongs(Partition partition) throws Exception {
    int rowBytes = 19;
    try (Cluster cluster = new Cluster("auto", 1, 3)) {
      for (int keyBytes : new int[] {4, 8}) {
        cluster.shuffle(rowBytes, (worker, shuffle) -> {
          Rows rows = new Rows(7, 3000, rowBytes, 3); // of each worker
          MemorySender sender = shuffle.sender().memory();
          assertEquals(1000, sender.sendAll(rows.bytes, 0, 1000, 5, keyBytes, partition));
          int rest =
              sender.sendAll(
                  address(rows.bytes, 1), rows.bytes.remaining(), 1000, 3000, 5, keyBytes, partition, Wait.FOREVER);
          assertEquals(2000, rest);
          assertEquals(Outcome.DONE, shuffle.sender().finish());
          int[] count = {0};
          drain(shuffle, batch -> {
            for (; batch.nextRow(); count[0]++) {
              int at = batch.rowOffset() + 5;
              long key = keyBytes == 4 ? Integer.toUnsignedLong(batch.getInt(at)) : batch.getLong(at);
              assertEquals(worker.number(), partition.receiverOf(key, 3));
            }
          });
          long mine =
              rows.rows.stream()
                  .map(row -> ByteBuffer.wrap(row).order(ByteOrder.LITTLE_ENDIAN))
                  .mapToLong(row -> keyBytes == 4 ? Integer.toUnsignedLong(row.getInt(5)) : row.getLong(5))
                  .filter(key -> partition.receiverOf(key, 3) == worker.number())
                  .count();
          assertEquals(3 * mine, count[0]);
        });
      }
    }
  }

  @Test
  void keysOfOtherWidthsGoTogetherWhateverThePartition() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 2)) {
      for (int keyBytes : new int[] {1, 5, 16}) {
        int[][] first = new int[2][];
        for (Partition partition : Partition.values()) {
          int[][] counts = new int[2][256]; // of each receiver: rows by the first byte of the key
          cluster.shuffle(16, (worker, shuffle) -> {
            Rows rows = new Rows(7, 2000, 16, 2);
            assertEquals(2000, shuffle.sender().memory().sendAll(rows.bytes, 0, 2000, 16 - keyBytes, keyBytes, partition));
            assertEquals(Outcome.DONE, shuffle.sender().finish());
            drain(shuffle, batch -> {
              while (batch.nextRow()) {
                counts[worker.number()][batch.getByte(batch.rowOffset() + 16 - keyBytes) & 0xff]++;
              }
            });
          });
          assertEquals(2 * 2000, Arrays.stream(counts).flatMapToInt(Arrays::stream).sum());
          for (int receiver = 0; receiver < 2; receiver++) {
            assertTrue(Arrays.stream(counts[receiver]).sum() > 500, "the keys are spread");
            if (first[receiver] == null) {
              first[receiver] = counts[receiver];
            }
            assertArrayEquals(first[receiver], counts[receiver]);
          }
          for (int value = 0; keyBytes == 1 && value < 256; value++) {
            assertTrue(counts[0][value] == 0 || counts[1][value] == 0, "a key of two receivers");
          }
        }
      }
    }
  }

  // --- rows of pieces

  /** The bytes of row {@code seed}, cut where {@code cuts} say, each piece in a buffer of its own, behind its beginning. */
  private static ByteBuffer[] pieces(byte[] row, int... cuts) {
    ByteBuffer[] pieces = new ByteBuffer[cuts.length + 1];
    for (int i = 0; i < pieces.length; i++) {
      int from = i == 0 ? 0 : cuts[i - 1];
      int to = i == cuts.length ? row.length : cuts[i];
      pieces[i] = direct(BEGIN + to - from + 1).position(BEGIN).put(row, from, to - from).flip().position(BEGIN);
    }
    return pieces;
  }

  private static byte[] randomRow(int seed, int bytes) {
    byte[] row = new byte[bytes];
    new Random(seed).nextBytes(row);
    return row;
  }

  private static byte[] row(Batch batch) {
    byte[] row = new byte[batch.rowLength()];
    batch.getBytes(batch.rowOffset(), row, 0, row.length);
    return row;
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aRowOfPiecesArrivesWholeAtOneAndAtSeveral(boolean byAddress) throws Exception {
    int[] lengths = {0, 10, 5000, 300_000, 10};
    try (Cluster cluster = new Cluster("auto", 1, 3)) {
      cluster.shuffle(0, (worker, shuffle) -> {
        MemorySender sender = shuffle.sender().memory();
        for (int i = 0; i < lengths.length; i++) {
          int length = lengths[i];
          ByteBuffer[] pieces = pieces(randomRow(i, length), length / 4, length / 4, length / 2); // one is empty
          int[] to = {2, 0};
          long[] addresses = Stream.of(pieces).mapToLong(piece -> address(piece, 1)).toArray();
          long[] bytes = Stream.of(pieces).mapToLong(Buffer::remaining).toArray();
          Outcome several = byAddress ? sender.sendParts(to, addresses, bytes, Wait.FOREVER) : sender.sendParts(to, pieces, Wait.FOREVER);
          assertEquals(Outcome.DONE, several);
          assertEquals(Outcome.DONE, sender.sendParts(1, pieces));
          assertEquals(1, sender.taken());
          assertTrue(Stream.of(pieces).allMatch(piece -> piece.position() == BEGIN), "pieces stay as they are");
        }
        assertEquals(Outcome.DONE, shuffle.sender().finish());
        int[] next = new int[3];
        drain(shuffle, batch -> {
          while (batch.nextRow()) {
            int i = next[batch.sender()]++;
            assertArrayEquals(randomRow(i, lengths[i]), row(batch));
          }
        });
        assertArrayEquals(new int[] {lengths.length, lengths.length, lengths.length}, next);
      });
    }
  }

  @Test
  void aRowOfPiecesThatIsNoneOfTheShuffleIsRefusedByItsName() throws Exception {
    try (Cluster cluster = new Cluster(1, 1, config -> config.set(Setting.ROW_LIMIT_BYTES, 1 << 16));
        Shuffle fixed = cluster.openShuffle(8);
        Shuffle variable = cluster.openShuffle(0)) {
      MemorySender sender = variable.sender().memory();
      int[] to = {0};
      ByteBuffer four = direct(4);
      long at = address(four, 1);
      failsBy(Code.INVALID_ARGUMENT, () -> sender.sendParts(0, four, ByteBuffer.allocate(4)), "pieces[1]: the buffer lies in the Java heap");
      assertEquals("pieces[1]", assertThrows(NullPointerException.class, () -> sender.sendParts(0, four, null)).getMessage());
      failsBy(Code.INVALID_ARGUMENT, () -> sender.sendParts(1, four), "receiver 1 does not exist");
      failsBy(Code.INVALID_ARGUMENT, () -> sender.sendParts(new int[] {0, 0}, new ByteBuffer[] {four}, Wait.NONE), "twice");
      failsBy(Code.INVALID_ARGUMENT, () -> sender.sendParts(new int[0], new ByteBuffer[] {four}, Wait.NONE), "a row for no receiver");
      failsBy(Code.INVALID_ARGUMENT, () -> sender.sendParts(to, new long[] {at}, new long[2], Wait.NONE), "1 addresses of pieces, and 2 lengths");
      failsBy(Code.INVALID_ARGUMENT, () -> sender.sendParts(to, new long[] {at}, new long[] {-1}, Wait.NONE), "a piece of -1 bytes");
      failsBy(Code.INVALID_ARGUMENT, () -> sender.sendParts(to, new long[1], new long[] {4}, Wait.NONE), "has bytes, but no address");
      long[] many = new long[65_537];
      failsBy(Code.INVALID_ARGUMENT, () -> sender.sendParts(to, many, many, Wait.NONE), "more than 65536 pieces");
      ByteBuffer large = direct(1 << 15);
      failsBy(Code.ROW_TOO_LARGE, () -> sender.sendParts(0, large, large, four), "65540 bytes");
      long[] huge = {at, at, at};
      failsBy(Code.ROW_TOO_LARGE, () -> sender.sendParts(to, huge, new long[] {Long.MAX_VALUE, Long.MAX_VALUE, 9}, Wait.NONE), "no sum");
      failsBy(Code.INVALID_ARGUMENT, () -> fixed.sender().memory().sendParts(0, four), "4 bytes");
      assertEquals(0, sender.taken());
      for (Shuffle each : List.of(fixed, variable)) {
        assertEquals(Outcome.DONE, each.sender().finish(Wait.NONE));
        assertEquals(Outcome.END_OF_STREAM, each.receiver().receive(each.receiver().newBatch(), Wait.NONE));
      }
    }
  }

  @Test
  void aRowOfPiecesWaitsForRoom() throws Exception {
    towardsAFullRing(8, (sending, receiving) -> {
      MemorySender sender = sending.sender().memory();
      ByteBuffer rows = counting(MANY);
      int sent = 0;
      Outcome outcome;
      do {
        outcome = sender.sendParts(0, new ByteBuffer[] {rows.slice(8 * sent, 3), rows.slice(8 * sent + 3, 5)}, Wait.NONE);
        sent += sender.taken();
      } while (outcome == Outcome.DONE);
      assertEquals(Outcome.WOULD_WAIT, outcome);
      assertEquals(Outcome.WOULD_WAIT, sender.stoppedBy());
      ByteBuffer last = rows.slice(8 * sent, 8);
      assertEquals(Outcome.DEADLINE, sender.sendParts(0, new ByteBuffer[] {last}, Wait.atMost(Duration.ofMillis(1))));
      int count = sent + 1;
      FutureTask<Integer> taking = Checks.start(() -> take(receiving, count));
      assertEquals(Outcome.DONE, sender.sendParts(0, last));
      sending.sender().flush();
      assertEquals(count, taking.get());
    });
  }

  // --- waiting

  /** Worker 0 sends to worker 1, whose ring is full, as it receives nothing yet. */
  private interface FullTask {
    void run(Shuffle sending, Shuffle receiving) throws Exception;
  }

  private static void towardsAFullRing(int rowBytes, FullTask task) throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 2)) {
      ShuffleSpec spec = cluster.spec(rowBytes, 0, 1);
      Shuffle receiving = inThread(() -> cluster.worker(1).openShuffle(spec));
      Shuffle sending = cluster.worker(0).openShuffle(spec);
      task.run(sending, receiving);
    }
  }

  /** Takes rows of 8 bytes that count from 0 on, until this many have come. */
  private static int take(Shuffle receiving, int count) throws Exception {
    return inThread(() -> {
      Batch batch = receiving.receiver().newBatch();
      int next = 0;
      while (next < count) {
        assertEquals(Outcome.DONE, receiving.receiver().receive(batch));
        for (int i = 0; i < batch.rowCount(); i++) {
          assertEquals(next++, batch.getLong(8 * i));
        }
      }
      batch.release();
      return next;
    });
  }

  private static final int MANY = 200_000; // of 8 bytes: more than a ring of 256 KiB has room for

  private static ByteBuffer counting(int count) {
    ByteBuffer rows = direct(8 * count);
    rows.asLongBuffer().put(LongStream.range(0, count).toArray());
    return rows;
  }

  @Test
  void goesOnWhereAFullRingHasStoppedIt() throws Exception {
    towardsAFullRing(8, (sending, receiving) -> {
      ByteBuffer rows = counting(MANY);
      IntBuffer receivers = direct(4 * MANY).asIntBuffer();
      MemorySender sender = sending.sender().memory();
      int taken = sender.sendRows(rows, 0, MANY, receivers, Wait.NONE);
      assertEquals(Outcome.WOULD_WAIT, sender.stoppedBy());
      assertEquals(taken, sender.taken());
      assertTrue(taken > 0 && taken < MANY, taken + " rows found room");
      for (Wait<?> wait : List.of(Wait.atMost(Duration.ZERO), Wait.atMost(Duration.ofMillis(5)))) {
        assertEquals(0, sender.sendRows(rows, taken, MANY, receivers, wait));
        assertEquals(Outcome.DEADLINE, sender.stoppedBy());
      }
      FutureTask<Integer> taking = Checks.start(() -> take(receiving, MANY));
      assertEquals(MANY - taken, sender.sendRows(rows, taken, MANY, receivers));
      assertEquals(Outcome.DONE, sender.stoppedBy());
      sending.sender().flush();
      assertEquals(MANY, taking.get());
    });
  }

  /** The number is that of the call, also where native code has gone on several times before. */
  @Test
  void aRowThatIsRefusedAfterAWaitIsNamedByItsNumber() throws Exception {
    towardsAFullRing(8, (sending, receiving) -> {
      ByteBuffer rows = counting(MANY);
      IntBuffer receivers = direct(4 * MANY).asIntBuffer();
      receivers.put(MANY - 2, 9);
      MemorySender sender = sending.sender().memory();
      FutureTask<Integer> taking = Checks.start(() -> take(receiving, MANY - 2));
      failsBy(
          Code.INVALID_ARGUMENT,
          () -> sender.sendRows(rows, 0, MANY, receivers),
          "stage 1: row " + (MANY - 2) + ": receiver 9 does not exist (0 … 0)");
      assertEquals(MANY - 2, sender.taken());
      sending.sender().flush();
      assertEquals(MANY - 2, taking.get());
    });
  }

  @Test
  void anInterruptEndsItsWaitAndWhatWasTakenIsKnown() throws Exception {
    towardsAFullRing(8, (sending, receiving) -> {
      ByteBuffer rows = counting(MANY);
      IntBuffer receivers = direct(4 * MANY).asIntBuffer();
      MemorySender sender = sending.sender().memory();
      Thread.currentThread().interrupt();
      assertThrows(InterruptedException.class, () -> sender.sendRows(rows, 0, MANY, receivers));
      int taken = sender.taken();
      assertTrue(taken > 0 && taken < MANY, taken + " rows found room");
      FutureTask<Integer> taking = Checks.start(() -> take(receiving, MANY));
      assertEquals(MANY - taken, sender.sendRows(rows, taken, MANY, receivers));
      sending.sender().flush();
      assertEquals(MANY, taking.get());
    });
  }

  @Test
  void whileBatchesAreHeldRowsWithoutRoomAreQueued() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 2)) {
      ShuffleSpec spec = cluster.spec(8);
      Shuffle other = inThread(() -> cluster.worker(1).openShuffle(spec));
      Shuffle shuffle = cluster.worker(0).openShuffle(spec);
      assertEquals(Outcome.DONE, shuffle.sender().longs().send(0, 7));
      shuffle.sender().flush();
      Batch held = received(shuffle);
      IntBuffer receivers = direct(4 * MANY).asIntBuffer();
      for (int i = 0; i < MANY; i++) {
        receivers.put(i, 1);
      }
      assertEquals(MANY, shuffle.sender().memory().sendRows(counting(MANY), 0, MANY, receivers));
      held.release();
      FutureTask<Integer> taking = Checks.start(() -> take(other, MANY));
      assertEquals(Outcome.DONE, shuffle.sender().finish());
      assertEquals(MANY, taking.get());
    }
  }

  @Test
  void rowsForAReceiverThatHasStoppedAreTakenUntilAllHaveStopped() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 1)) {
      Shuffle shuffle = cluster.openShuffle(8);
      shuffle.receiver().stop();
      MemorySender sender = shuffle.sender().memory();
      assertEquals(0, sender.sendRows(counting(5), 0, 5, direct(4 * 5).asIntBuffer()));
      assertEquals(Outcome.STOPPED, sender.stoppedBy());
      assertEquals(Outcome.DONE, shuffle.sender().finish());
      shuffle.close();
    }
  }

  // --- what is refused

  @Test
  void aRowThatIsRefusedIsNamedAndThoseBeforeItWereSent() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 1)) {
      cluster.shuffle(0, (worker, shuffle) -> {
        MemorySender sender = shuffle.sender().memory();
        ByteBuffer rows = direct(100);
        IntBuffer to = direct(4 * 4).asIntBuffer();
        IntBuffer offsets = direct(4 * 5).asIntBuffer();
        LongBuffer wide = direct(8 * 5).asLongBuffer();
        offsets.put(0, new int[] {0, 10, 20, 15, 30});
        wide.put(0, new long[] {0, 10, 20, 101, 102});
        failsBy(Code.INVALID_ARGUMENT, () -> sender.sendRows(rows, offsets, 0, 4, to), "stage 1: row 2: its offsets fall from 20 to 15");
        assertEquals(2, sender.taken());
        failsBy(Code.INVALID_ARGUMENT, () -> sender.sendRows(rows, wide, 1, 4, to), "stage 1: row 2: it ends at byte 101, but all rows have 100");
        assertEquals(1, sender.taken());
        wide.put(3, Long.MIN_VALUE);
        failsBy(Code.INVALID_ARGUMENT, () -> sender.sendRows(rows, wide, 2, 4, to), "stage 1: row 2: it ends at byte 9223372036854775808");
        assertEquals(0, sender.taken());
        offsets.put(3, 20);
        to.put(3, -1);
        failsBy(Code.INVALID_ARGUMENT, () -> sender.sendRows(rows, offsets, 2, 4, to), "stage 1: row 3: receiver 4294967295 does not exist (0 … 0)");
        assertEquals(1, sender.taken());
        assertEquals(Outcome.DONE, shuffle.sender().finish());
        List<Integer> lengths = new ArrayList<>();
        drain(shuffle, batch -> {
          while (batch.nextRow()) {
            lengths.add(batch.rowLength());
          }
        });
        assertEquals(List.of(10, 10, 10, 0), lengths);
      });
    }
  }

  @Test
  void aRowAboveTheLimitIsNamed() throws Exception {
    try (Cluster cluster = new Cluster(1, 1, config -> config.set(Setting.ROW_LIMIT_BYTES, 1 << 16))) {
      Shuffle shuffle = cluster.openShuffle(0);
      MemorySender sender = shuffle.sender().memory();
      ByteBuffer rows = direct(1 << 17);
      IntBuffer offsets = direct(4 * 3).asIntBuffer().put(0, new int[] {0, 5, 1 << 17});
      failsBy(Code.ROW_TOO_LARGE, () -> sender.sendRows(rows, offsets, 0, 2, direct(8).asIntBuffer()), "stage 1: row 1: its 131067 bytes");
      assertEquals(1, sender.taken());
      shuffle.close();
    }
  }

  @Test
  void theWrongFormForTheShuffleSendsNothing() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 1);
        Shuffle fixed = cluster.openShuffle(8);
        Shuffle variable = cluster.openShuffle(0)) {
      ByteBuffer rows = direct(16);
      IntBuffer to = direct(8).asIntBuffer();
      IntBuffer offsets = direct(12).asIntBuffer();
      MemorySender sender = fixed.sender().memory();
      failsBy(Code.INVALID_ARGUMENT, () -> sender.sendRows(rows, offsets, 0, 2, to), "rows by offsets, but row_bytes = 8");
      failsBy(Code.INVALID_ARGUMENT, () -> sender.sendAll(rows, 0, 3, 0, 8, Partition.FINALIZER), "3 rows of 8 bytes in 16 bytes");
      failsBy(Code.INVALID_ARGUMENT, () -> sender.sendRows(rows.slice(1, 15), 0, 2, to), "2 rows of 8 bytes in 15 bytes");
      failsBy(Code.INVALID_ARGUMENT, () -> sender.sendAll(rows, 0, 2, 1, 8, Partition.FINALIZER), "a key of 8 bytes at 1 in rows of 8 bytes");
      failsBy(Code.INVALID_ARGUMENT, () -> sender.sendAll(rows, 0, 2, 0, 0, Partition.FINALIZER), "a key of 0 bytes at 0");
      failsBy(Code.INVALID_ARGUMENT, () -> sender.sendAll(rows, 0, 2, -1, 8, Partition.FINALIZER), "a key of 8 bytes at -1");
      assertEquals(0, sender.taken());
      MemorySender other = variable.sender().memory();
      failsBy(Code.INVALID_ARGUMENT, () -> other.sendRows(rows, 0, 2, to), "rows without offsets");
      failsBy(Code.INVALID_ARGUMENT, () -> other.sendAll(rows, 0, 2, 0, 8, Partition.FINALIZER), "rows without offsets");
      assertEquals(0, other.taken());
      for (Shuffle each : List.of(fixed, variable)) {
        assertEquals(Outcome.DONE, each.sender().finish(Wait.NONE));
        assertEquals(Outcome.END_OF_STREAM, each.receiver().receive(each.receiver().newBatch(), Wait.NONE));
      }
    }
  }

  @Test
  void aBufferOfAnotherKindIsRefusedByItsName() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 1);
        Shuffle fixed = cluster.openShuffle(8);
        Shuffle variable = cluster.openShuffle(0)) {
      ByteBuffer rows = direct(16);
      IntBuffer to = direct(8).asIntBuffer();
      IntBuffer offsets = direct(12).asIntBuffer();
      LongBuffer wide = direct(24).asLongBuffer();
      ByteBuffer swapped = ByteBuffer.allocateDirect(24).order(ByteOrder.BIG_ENDIAN);
      ByteBuffer odd = direct(40).position(1).slice().order(ByteOrder.nativeOrder());
      ByteBuffer half = direct(40).position(4).slice().order(ByteOrder.nativeOrder());
      MemorySender sender = fixed.sender().memory();
      MemorySender other = variable.sender().memory();
      String heap = "lies in the Java heap";
      failsBy(Code.INVALID_ARGUMENT, () -> sender.sendRows(ByteBuffer.allocate(16), 0, 2, to), "rows: ", heap);
      failsBy(Code.INVALID_ARGUMENT, () -> sender.sendAll(ByteBuffer.allocate(16), 0, 2, 0, 8, Partition.FINALIZER), "rows: ", heap);
      failsBy(Code.INVALID_ARGUMENT, () -> sender.sendRows(rows, 0, 2, IntBuffer.allocate(2)), "receivers: ", heap);
      failsBy(Code.INVALID_ARGUMENT, () -> sender.sendRows(rows, 0, 2, swapped.asIntBuffer()), "receivers: the buffer is BIG_ENDIAN");
      failsBy(Code.INVALID_ARGUMENT, () -> sender.sendRows(rows, 0, 2, odd.asIntBuffer()), "receivers: their address is no multiple");
      failsBy(Code.INVALID_ARGUMENT, () -> other.sendRows(rows, IntBuffer.allocate(3), 0, 2, to), "offsets: ", heap);
      failsBy(Code.INVALID_ARGUMENT, () -> other.sendRows(rows, LongBuffer.allocate(3), 0, 2, to), "offsets: ", heap);
      failsBy(Code.INVALID_ARGUMENT, () -> other.sendRows(rows, swapped.asLongBuffer(), 0, 2, to), "offsets: the buffer is BIG_ENDIAN");
      failsBy(Code.INVALID_ARGUMENT, () -> other.sendRows(rows, half.asLongBuffer(), 0, 2, to), "offsets: their address is no multiple of their 8");
      assertEquals(2, other.sendRows(rows, half.asIntBuffer(), 0, 2, to, Wait.NONE));
      long rowsAt = address(rows, 1);
      long toAt = address(to, 4);
      failsBy(Code.INVALID_ARGUMENT, () -> sender.sendRows(rowsAt, -1, 0, 2, toAt, Wait.NONE), "rows of -1 bytes");
      failsBy(Code.INVALID_ARGUMENT, () -> sender.sendRows(0, 16, 0, 2, toAt, Wait.NONE), "rows");
      failsBy(Code.INVALID_ARGUMENT, () -> sender.sendRows(rowsAt, 16, 0, 2, 0, Wait.NONE), "receivers");
      failsBy(Code.INVALID_ARGUMENT, () -> other.sendRows(rowsAt, 16, address(wide, 8), 2, 0, 2, toAt, Wait.NONE), "offsets of 2 bytes");
      failsBy(Code.INVALID_ARGUMENT, () -> other.sendRows(rowsAt, 16, 0, 8, 0, 2, toAt, Wait.NONE), "offsets");

      assertThrows(IndexOutOfBoundsException.class, () -> sender.sendRows(rows, 0, 3, to));
      assertThrows(IndexOutOfBoundsException.class, () -> sender.sendRows(rows, -1, 2, to));
      assertThrows(IndexOutOfBoundsException.class, () -> sender.sendRows(rows, 2, 1, to));
      assertThrows(IndexOutOfBoundsException.class, () -> sender.sendRows(rows, 0, 2, to.duplicate().position(1)));
      assertThrows(IndexOutOfBoundsException.class, () -> other.sendRows(rows, offsets.duplicate().limit(2), 0, 2, to));
      assertThrows(IndexOutOfBoundsException.class, () -> other.sendRows(rows, wide.duplicate().position(1), 0, 2, to));
      assertThrows(IndexOutOfBoundsException.class, () -> sender.sendAll(rows, 1, 0, 0, 8, Partition.FINALIZER));
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aClosedShuffleAndAnotherThreadsWorkerAreRefused(boolean byAddress) throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 1)) {
      Shuffle shuffle = cluster.openShuffle(8);
      MemorySender sender = shuffle.sender().memory();
      ByteBuffer rows = direct(8);
      IntBuffer to = direct(4).asIntBuffer();
      Way one =
          (memory, none, from, count) ->
              byAddress
                  ? memory.sendRows(address(rows, 1), 8, from, count, address(to, 4), Wait.NONE)
                  : memory.sendRows(rows, from, count, to, Wait.NONE);
      assertEquals(1, one.send(sender, null, 0, 1));
      inThread(() -> failsBy(Code.WRONG_STATE, () -> one.send(sender, null, 0, 1), "belongs to thread"));
      assertEquals(1, sender.taken());
      shuffle.close();
      failsBy(Code.CLOSED, () -> one.send(sender, null, 0, 1));
      assertEquals(0, sender.taken());
      failsBy(Code.CLOSED, () -> shuffle.sender().memory());
    }
  }

  // --- Batch.offsets

  @Test
  void offsetsFillTheirArrayAndNoMore() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 1);
        Shuffle shuffle = cluster.openShuffle(0)) {
      ByteBuffer rows = direct(6);
      IntBuffer ends = direct(16).asIntBuffer().put(0, new int[] {0, 1, 1, 6});
      assertEquals(3, shuffle.sender().memory().sendRows(rows, ends, 0, 3, direct(12).asIntBuffer(), Wait.NONE));
      shuffle.sender().flush();
      Batch batch = received(shuffle);
      int[] more = {-1, -1, -1, -1, -1};
      assertEquals(3, batch.offsets(more));
      assertArrayEquals(new int[] {0, 5, 9, 18, -1}, more);
      int[] fewer = new int[3];
      assertEquals(2, batch.offsets(fewer));
      assertArrayEquals(new int[] {0, 5, 9}, fewer);
      assertEquals(0, batch.offsets(new int[1]));
      assertEquals(0, batch.offsets(new int[0]));
      assertTrue(batch.nextRow(), "rows are read beside it");
      batch.release();
      failsBy(Code.WRONG_STATE, () -> batch.offsets(more));
    }
  }

  @Test
  void lengthsThatDoNotFitTheirBatchAreRefused() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 1);
        Shuffle shuffle = cluster.openShuffle(0)) {
      Batch batch = shuffle.receiver().newBatch();
      GuardedMemory memory = new GuardedMemory(1 << 16); // nothing can be read behind the batch
      ByteBuffer frame = ByteBuffer.allocate(12).order(ByteOrder.LITTLE_ENDIAN);
      int[] to = new int[3];
      for (int length : new int[] {6, 9, -1, Integer.MAX_VALUE, Integer.MIN_VALUE}) { // 6: no room for the next length
        frame.putInt(0, length);
        batch.place(memory.put(frame.array()), null, 12, 2, 0, 0);
        failsBy(Code.PROTOCOL_ERROR, () -> batch.offsets(to), "it ends within a row");
      }
      frame.putInt(0, 4).putInt(8, 0);
      batch.place(memory.put(frame.array()), null, 12, 2, 0, 0);
      assertEquals(2, batch.offsets(to));
      assertArrayEquals(new int[] {0, 8, 12}, to);
      batch.forget();
    }
  }
}
