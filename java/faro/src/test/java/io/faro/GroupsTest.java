package io.faro;

import static io.faro.Checks.check;
import static io.faro.Checks.drain;
import static io.faro.Checks.failsBy;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.IntBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Rows that are sent to groups of receivers, by every sender. Worker 0 of three sends; one thread is all of them. */
@Timeout(60)
class GroupsTest {
  private static final int[][] GROUPS = {{0, 1}, {1, 2}, {2}};

  private final List<List<Long>> got = List.of(new ArrayList<>(), new ArrayList<>(), new ArrayList<>());

  /** What a sender does. */
  private interface Sends {
    void rows(ShuffleSender sender) throws Exception;
  }

  /** Its rows are taken: the first eight bytes of each. */
  private void run(int rowBytes, Sends sends) throws Exception {
    try (Cluster cluster = new Cluster("tcp", 1, 3)) {
      ShuffleSpec spec = ShuffleSpec.repartition(cluster.beginQuery(), 0);
      ShuffleSpec fromFirst = spec.withRowBytes(rowBytes).withSenders(0);
      cluster.onEachWorker(
          worker -> {
            boolean sending = worker.number() == 0;
            Shuffle shuffle =
                worker.openShuffle(sending ? fromFirst.withGroups(GROUPS) : fromFirst);
            if (sending) {
              assertEquals(3, shuffle.sender().receiverCount());
              sends.rows(shuffle.sender());
              check(shuffle.sender().finish());
            }
            List<Long> rows = got.get(worker.number());
            drain(
                shuffle,
                batch -> {
                  while (batch.nextRow()) {
                    rows.add(batch.getLong(batch.rowOffset()));
                  }
                });
            shuffle.close();
            worker.endQuery(fromFirst.query());
          });
    }
  }

  private void expect(long[]... byReceiver) {
    for (int receiver = 0; receiver < 3; receiver++) {
      long[] rows = got.get(receiver).stream().mapToLong(Long::longValue).sorted().toArray();
      assertArrayEquals(byReceiver[receiver], rows, "receiver " + receiver);
    }
  }

  @Test
  void longsGoToGroups() throws Exception {
    long[] many = LongStream.range(100, 160).toArray();
    run(
        Long.BYTES,
        sender -> {
          LongSender longs = sender.longs();
          for (int group = 0; group < 3; group++) {
            check(longs.send(group, group));
          }
          assertEquals(many.length, longs.sendAll(many, 0, many.length, Partition.FINALIZER));
        });
    long[][] expected = new long[3][];
    for (int receiver = 0; receiver < 3; receiver++) {
      int to = receiver;
      LongStream single = IntStream.range(0, 3).filter(g -> has(g, to)).asLongStream();
      LongStream byKey =
          LongStream.of(many).filter(row -> has(Partition.FINALIZER.receiverOf(row, 3), to));
      expected[receiver] = LongStream.concat(single, byKey).sorted().toArray();
    }
    expect(expected);
  }

  private static boolean has(int group, int receiver) {
    return IntStream.of(GROUPS[group]).anyMatch(member -> member == receiver);
  }

  @Test
  void rowsInMemoryGoToGroups() throws Exception {
    ByteBuffer rows = ByteBuffer.allocateDirect(6 * Long.BYTES).order(ByteOrder.nativeOrder());
    LongStream.range(0, 6).forEach(row -> rows.putLong((int) row * Long.BYTES, row));
    IntBuffer groups = ByteBuffer.allocateDirect(24).order(ByteOrder.nativeOrder()).asIntBuffer();
    groups.put(new int[] {0, 1, 2, 0, 1, 2}).flip();
    run(
        Long.BYTES,
        sender -> assertEquals(6, sender.memory().sendRows(rows, 0, 6, groups)));
    expect(new long[] {0, 3}, new long[] {0, 1, 3, 4}, new long[] {1, 2, 4, 5});
  }

  @Test
  void arraysClaimsAndPiecesGoToGroups() throws Exception {
    run(
        0,
        sender -> {
          byte[] row = new byte[Long.BYTES];
          ByteBuffer.wrap(row).order(ByteOrder.nativeOrder()).putLong(7);
          check(sender.send(0, row, 0, row.length));
          RowWriter writer = sender.rows();
          check(writer.claim(1, 100));
          writer.putLong(0, 8);
          writer.commit(Long.BYTES);
          byte[] large = new byte[100_000];
          ByteBuffer.wrap(large).order(ByteOrder.nativeOrder()).putLong(9);
          check(sender.send(0, large, 0, large.length));
          check(writer.claim(1, large.length));
          writer.putLong(0, 10);
          writer.commit(large.length);
          ByteBuffer[] pieces = {ByteBuffer.allocateDirect(3), ByteBuffer.allocateDirect(5)};
          row[0] = 11;
          pieces[0].put(row, 0, 3).flip();
          pieces[1].put(row, 3, 5).flip();
          check(sender.memory().sendParts(2, pieces));
          row[0] = 12;
          check(sender.multicast(new int[] {2, 0}, row, 0, row.length));
          row[0] = 13;
          check(sender.broadcast(row, 0, row.length));
          failsBy(
              Code.INVALID_ARGUMENT,
              () -> sender.send(3, row, 0, row.length),
              "group 3 does not exist (0 … 2)");
        });
    expect(
        new long[] {7, 9, 12, 13},
        new long[] {7, 8, 9, 10, 12, 13, 13},
        new long[] {8, 10, 11, 12, 13, 13});
  }

  @Test
  void whatIsNoGroupIsRefused() {
    try (Cluster cluster = new Cluster("tcp", 1, 2)) {
      ShuffleSpec spec = ShuffleSpec.repartition(cluster.beginQuery(), 0);
      Worker worker = cluster.worker(0);
      failsBy(
          Code.INVALID_ARGUMENT,
          () -> worker.openShuffle(spec.withGroups(new int[] {0}, new int[] {1, 2})),
          "group 1: receiver 2 does not exist (0 … 1)");
      failsBy(
          Code.INVALID_ARGUMENT,
          () -> worker.openShuffle(spec.withGroups(new int[] {0, 0})),
          "group 0: receiver 0 is named twice");
      failsBy(
          Code.INVALID_ARGUMENT,
          () -> worker.openShuffle(spec.withGroups(new int[] {0}, new int[0])),
          "group 1 is empty");
      failsBy(
          Code.INVALID_ARGUMENT,
          () -> spec.withGroups(new int[] {0}, new int[] {-1}),
          "a member of group 1 = -1 is negative");
    }
  }

  @Test
  void aSpecHasCopiesOfItsGroups() {
    int[][] groups = {{0, 1}, {1}};
    ShuffleSpec spec = ShuffleSpec.repartition(new QueryId(0, 1, 2), 3).withGroups(groups);
    groups[0][0] = 5;
    assertArrayEquals(new int[][] {{0, 1}, {1}}, spec.groups());
    spec.groups()[1][0] = 5;
    assertArrayEquals(new int[][] {{0, 1}, {1}}, spec.withRowBytes(8).withSenders(0).groups());
    assertEquals(spec, spec.withGroups(new int[] {0, 1}, new int[] {1}));
    assertNotEquals(spec, spec.withGroups());
    assertEquals(
        "stage 3 of query " + spec.query()
            + ", rowBytes 0, senders all, receivers all, groups [[0, 1], [1]]",
        spec.toString());
  }
}
