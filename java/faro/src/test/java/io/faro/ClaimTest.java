package io.faro;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Rows whose place is asked for before they are written. */
@Timeout(20)
class ClaimTest {
  /** Asks for more than a frame has, and writes as much as there is. */
  private static final RowCodec<byte[]> GENEROUS =
      new CodecAround<>(RowCodecs.BYTES) {
        @Override
        public int maxBytes(byte[] object) {
          return 64 * 1024;
        }
      };

  private static ShuffleSpec spec(Cluster cluster, int rowBytes, int receiver) {
    return new ShuffleSpec(
        cluster.session(0).beginQuery(), 1, rowBytes, new int[] {0}, new int[] {receiver});
  }

  private static void check(Outcome outcome) {
    assertEquals(Outcome.DONE, outcome);
  }

  @ParameterizedTest
  @ValueSource(ints = {Long.BYTES, 0})
  void whatIsSentMeanwhileEndsIt(int rowBytes) {
    try (Cluster cluster = new Cluster("auto", 1, 1)) {
      try (Shuffle shuffle = cluster.worker(0).openShuffle(spec(cluster, rowBytes, 0))) {
        RowWriter writer = shuffle.rowWriter();
        ObjectSender<Long> sender = shuffle.sender(RowCodecs.LONG);
        check(sender.trySend(0, 6L));
        check(writer.tryClaim(0, Long.BYTES));
        check(sender.trySend(0, 7L));
        FaroException lost = assertThrows(FaroException.class, () -> writer.putLong(0, 1));
        assertEquals(Code.WRONG_STATE, lost.code());
        assertThrows(FaroException.class, () -> writer.commit(Long.BYTES));
        check(writer.tryClaim(0, Long.BYTES));
        writer.putLong(0, 8);
        writer.commit(Long.BYTES);
        check(shuffle.tryFinish());
        ObjectReceiver<Long> receiver = shuffle.receiver(RowCodecs.LONG);
        for (long expected = 6; expected <= 8; expected++) {
          check(receiver.tryNext());
          assertEquals(expected, receiver.get());
        }
        assertEquals(Outcome.END_OF_STREAM, receiver.tryNext());
      }
    }
  }

  @Test
  void whoTriesNeverWaitsForTheRoomOfARowThatMightHaveBeenLarge() {
    try (Cluster cluster = new Cluster("shm", 2, 1)) {
      ShuffleSpec spec = spec(cluster, 0, 1);
      try (Shuffle to = cluster.worker(1).openShuffle(spec);
          Shuffle from = cluster.worker(0).openShuffle(spec)) {
        ObjectSender<byte[]> sender = from.sender(GENEROUS);
        ObjectReceiver<byte[]> receiver = to.receiver(GENEROUS);
        byte[] row = new byte[3000];
        int sent = 0;
        int received = 0;
        for (int round = 0; round < 5; round++) {
          Outcome outcome = Outcome.DONE;
          while (outcome == Outcome.DONE) {
            ByteBuffer.wrap(row).putInt(sent);
            outcome = sender.trySend(0, row);
            sent += outcome == Outcome.DONE ? 1 : 0;
          }
          assertEquals(Outcome.WOULD_WAIT, outcome);
          from.flush();
          while (received < sent && receiver.tryNext() == Outcome.DONE) {
            assertEquals(received, ByteBuffer.wrap(receiver.get()).getInt());
            received++;
          }
          receiver.tryNext(); // gives the frame back
        }
        assertTrue(sent > 5, "rows: " + sent);
        // A row for which there was no room when it was committed waits for the next call.
        while (from.tryFinish() == Outcome.WOULD_WAIT) {
          received += receiver.tryNext() == Outcome.DONE ? 1 : 0;
        }
        for (Outcome next = receiver.tryNext(); next != Outcome.END_OF_STREAM; next = receiver.tryNext()) {
          received += next == Outcome.DONE ? 1 : 0;
        }
        assertEquals(sent, received);
      }
    }
  }

  /** As {@code commit} of C++: the claim has memory, and needs no more, however full all else is. */
  @Test
  void aCommitNeverWaitsAlsoWhereFramesAreHeldAndOverflowIsFull() throws Exception {
    long budget = 1 << 20;
    try (Cluster cluster =
        new Cluster(
            1,
            2,
            config ->
                config.set(Setting.OVERFLOW_MEMORY_BYTES, budget).set(Setting.OVERFLOW_FILE_BYTES, 0))) {
      Session session = cluster.session(0);
      ShuffleSpec spec = new ShuffleSpec(session.beginQuery(), 1, 0);
      ShuffleSpec other = new ShuffleSpec(session.beginQuery(), 1, 0);
      byte[] row = new byte[3000];
      try (Shuffle from = cluster.worker(0).openShuffle(spec);
          Shuffle to = cluster.worker(1).openShuffle(spec)) {
        int sent = 0;
        while (from.trySend(1, row, 0, row.length) == Outcome.DONE) {
          sent++;
        }
        Frame held = holding(from, 0);
        RowWriter writer = from.rowWriter();
        check(writer.tryClaim(1, 64 * 1024));
        writer.putLong(0, 4711);
        try (Shuffle greedy = cluster.worker(1).openShuffle(other)) {
          Frame alsoHeld = holding(greedy, 1);
          long left = budget - session.metrics().overflowMemoryBytes();
          byte[] rest = new byte[(int) left - 4000]; // less than a frame is left then
          check(greedy.trySend(0, rest, 0, rest.length));
          assertTrue(budget - session.metrics().overflowMemoryBytes() < 5000, () -> session.metrics().toString());
          writer.commit(row.length);
          alsoHeld.close();
        }
        held.close();
        Frame frame = to.newFrame();
        long last = 0;
        int received = 0;
        Outcome polled = Outcome.WOULD_WAIT;
        for (boolean finished = false; polled != Outcome.END_OF_STREAM; ) {
          finished = finished || from.tryFinish() == Outcome.DONE;
          to.tryFinish();
          polled = to.tryPoll(frame);
          while (polled == Outcome.DONE && frame.nextRow()) {
            received++;
            last = frame.getLong(frame.rowOffset());
          }
        }
        assertEquals(sent + 1, received);
        assertEquals(4711, last);
        from.stop();
      }
    }
  }

  /** A frame of a row that the worker has sent to itself. */
  private static Frame holding(Shuffle shuffle, int self) {
    byte[] row = new byte[8];
    check(shuffle.trySend(self, row, 0, row.length));
    shuffle.flush();
    Frame frame = shuffle.newFrame();
    check(shuffle.tryPoll(frame));
    return frame;
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
