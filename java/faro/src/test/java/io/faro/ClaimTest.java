package io.faro;

import static java.nio.charset.StandardCharsets.UTF_8;
import static io.faro.Checks.check;
import static io.faro.Checks.failsBy;
import static io.faro.Checks.failure;
import static io.faro.Checks.received;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.Random;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Rows whose place is asked for before they are written. */
@Timeout(20)
class ClaimTest {
  /** Asks for more than a batch has, and writes as much as there is. */
  private static final RowCodec<byte[]> GENEROUS =
      new CodecAround<>(RowCodecs.BYTES) {
        @Override
        public int maxBytes(byte[] object) {
          return 64 * 1024;
        }
      };

  @ParameterizedTest
  @ValueSource(ints = {Long.BYTES, 0})
  void whatIsSentMeanwhileEndsIt(int rowBytes) {
    try (Cluster cluster = new Cluster("auto", 1, 1);
        Shuffle shuffle = cluster.openShuffle(rowBytes)) {
      RowWriter writer = shuffle.sender().rows();
      ObjectSender<Long> sender = shuffle.sender().objects(RowCodecs.LONG);
      check(sender.send(0, 6L, Wait.NONE));
      check(writer.claim(0, Long.BYTES, Wait.NONE));
      check(sender.send(0, 7L, Wait.NONE));
      failsBy(Code.WRONG_STATE, () -> writer.putLong(0, 1));
      failure(() -> writer.commit(Long.BYTES));
      check(writer.claim(0, Long.BYTES, Wait.NONE));
      writer.putLong(0, 8);
      writer.commit(Long.BYTES);
      check(shuffle.sender().finish(Wait.NONE));
      ObjectReceiver<Long> receiver = shuffle.receiver().objects(RowCodecs.LONG);
      for (long expected = 6; expected <= 8; expected++) {
        check(receiver.next(Wait.NONE));
        assertEquals(expected, receiver.get());
      }
      assertEquals(Outcome.END_OF_STREAM, receiver.next(Wait.NONE));
    }
  }

  @Test
  void whoTriesNeverWaitsForTheRoomOfARowThatMightHaveBeenLarge() {
    try (Cluster cluster = new Cluster("shm", 2, 1)) {
      ShuffleSpec spec = cluster.spec(0, 0, 1);
      try (Shuffle to = cluster.worker(1).openShuffle(spec);
          Shuffle from = cluster.worker(0).openShuffle(spec)) {
        ObjectSender<byte[]> sender = from.sender().objects(GENEROUS);
        ObjectReceiver<byte[]> receiver = to.receiver().objects(GENEROUS);
        byte[] row = new byte[3000];
        int sent = 0;
        int received = 0;
        for (int round = 0; round < 5; round++) {
          Outcome outcome = Outcome.DONE;
          while (outcome == Outcome.DONE) {
            ByteBuffer.wrap(row).putInt(sent);
            outcome = sender.send(0, row, Wait.NONE);
            sent += outcome == Outcome.DONE ? 1 : 0;
          }
          assertEquals(Outcome.WOULD_WAIT, outcome);
          from.sender().flush();
          while (received < sent && receiver.next(Wait.NONE) == Outcome.DONE) {
            assertEquals(received, ByteBuffer.wrap(receiver.get()).getInt());
            received++;
          }
          receiver.next(Wait.NONE); // gives the batch back
        }
        assertTrue(sent > 5, "rows: " + sent);
        // A row for which there was no room when it was committed waits for the next call.
        while (from.sender().finish(Wait.NONE) == Outcome.WOULD_WAIT) {
          received += receiver.next(Wait.NONE) == Outcome.DONE ? 1 : 0;
        }
        for (Outcome next = receiver.next(Wait.NONE); next != Outcome.END_OF_STREAM; next = receiver.next(Wait.NONE)) {
          received += next == Outcome.DONE ? 1 : 0;
        }
        assertEquals(sent, received);
      }
    }
  }

  /**
   * A commit is like {@code commit} of C++: the claim has memory, and needs no more, however full
   * all else is.
   */
  @Test
  void aCommitNeverWaitsAlsoWhereFramesAreHeldAndOverflowIsFull() throws Exception {
    long budget = 1 << 20;
    Consumer<SessionConfig.Builder> settings =
        config -> config.set(Setting.OVERFLOW_MEMORY_BYTES, budget).set(Setting.OVERFLOW_FILE_BYTES, 0);
    try (Cluster cluster = new Cluster(1, 2, settings)) {
      Session session = cluster.session(0);
      ShuffleSpec spec = cluster.spec(0);
      ShuffleSpec other = cluster.spec(0);
      byte[] row = new byte[3000];
      try (Shuffle from = cluster.worker(0).openShuffle(spec);
          Shuffle to = cluster.worker(1).openShuffle(spec)) {
        int sent = 0;
        while (from.sender().send(1, row, 0, row.length, Wait.NONE) == Outcome.DONE) {
          sent++;
        }
        Batch held = holding(from, 0);
        RowWriter writer = from.sender().rows();
        check(writer.claim(1, 64 * 1024, Wait.NONE));
        writer.putLong(0, 4711);
        try (Shuffle greedy = cluster.worker(1).openShuffle(other)) {
          Batch alsoHeld = holding(greedy, 1);
          long left = budget - session.metrics().overflowMemoryBytes();
          byte[] rest = new byte[(int) left - 4000]; // less than a batch is left then
          check(greedy.sender().send(0, rest, 0, rest.length, Wait.NONE));
          assertTrue(budget - session.metrics().overflowMemoryBytes() < 5000, () -> session.metrics().toString());
          writer.commit(row.length);
          alsoHeld.close();
        }
        held.close();
        Batch batch = to.receiver().newBatch();
        long last = 0;
        int received = 0;
        Outcome polled = Outcome.WOULD_WAIT;
        for (boolean finished = false; polled != Outcome.END_OF_STREAM; ) {
          finished = finished || from.sender().finish(Wait.NONE) == Outcome.DONE;
          to.sender().finish(Wait.NONE);
          polled = to.receiver().receive(batch, Wait.NONE);
          while (polled == Outcome.DONE && batch.nextRow()) {
            received++;
            last = batch.getLong(batch.rowOffset());
          }
        }
        assertEquals(sent + 1, received);
        assertEquals(4711, last);
        from.receiver().stop();
      }
    }
  }

  /** A batch of a row that the worker has sent to itself. */
  private static Batch holding(Shuffle shuffle, int self) {
    byte[] row = new byte[8];
    check(shuffle.sender().send(self, row, 0, row.length, Wait.NONE));
    shuffle.sender().flush();
    return received(shuffle);
  }

  @Test
  void aLongStringAsksForWhatItNeeds() {
    Random random = new Random(1);
    for (int i = 0; i < 2000; i++) {
      StringBuilder text = new StringBuilder();
      int limit = new int[] {0x80, 0x800, 0x10000, Character.MAX_CODE_POINT + 1}[i % 4];
      random.ints(random.nextInt(600), 0, limit).forEach(text::appendCodePoint);
      if (i % 8 < 4) { // whole characters alone
        text = new StringBuilder(new String(text.toString().getBytes(UTF_8), UTF_8));
      }
      int needed = text.toString().getBytes(UTF_8).length;
      int asked = Utf8.maxBytes(text.toString());
      assertTrue(asked >= needed, text.toString());
      if (text.length() > 256 && i % 8 < 4) {
        assertEquals(needed, asked, text.toString());
      }
    }
  }
}
