package io.faro;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Random;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * What Java and native code share is cursors, batch counts, a descriptor and rings. The first three
 * only ever change hands at the native calls of one thread; rings are published to other threads by
 * native code alone, with release and acquire. So there is no race for jcstress to look for; what can
 * go wrong is the hand-over, and here it happens in every order: each worker sends numbered rows of two
 * shuffles that share a ring, by every way there is, and polls, holds, detaches and releases frames,
 * all by chance. Every row says what it must contain.
 */
@Timeout(60)
class SharedMemoryStressTest {
  private static final int ROWS = 6_000; // of each worker, to each worker, in each shuffle

  @ParameterizedTest
  @CsvSource({"shm,1", "shm,2", "tcp,3", "auto,4"})
  void rowsArriveWholeAndInOrderHoweverOwnershipMoves(String transport, long seed) throws Exception {
    long start = seed + System.nanoTime();
    try (Cluster cluster = new Cluster(transport, 2, 1)) {
      QueryId query = cluster.beginQuery();
      cluster.onEachWorker(
          worker -> {
            try {
              new Mixture(worker, query, new Random(start + worker.number())).run();
            } catch (AssertionError | RuntimeException problem) {
              throw new AssertionError("seed " + start + ", worker " + worker.number(), problem);
            }
          });
    }
  }

  private static final class Mixture {
    private final Worker worker;
    private final QueryId query;
    private final Random random;
    private final Side longs;
    private final Side texts;

    Mixture(Worker worker, QueryId query, Random random) {
      this.worker = worker;
      this.query = query;
      this.random = random;
      // Stages 1 and 3 of two rings per lane: the same ring, and one open batch for both.
      longs = new Side(worker.openShuffle(new ShuffleSpec(query, 1, Long.BYTES)));
      texts = new Side(worker.openShuffle(new ShuffleSpec(query, 3, 0)));
    }

    void run() throws InterruptedException {
      while (!(longs.over() && texts.over())) {
        boolean moved = false;
        if (random.nextInt(10) != 0) { // what is sent while frames are held goes to the overflow
          longs.releaseAll();
          texts.releaseAll();
        }
        for (int burst = random.nextInt(200); burst > 0; burst--) {
          moved |= (random.nextBoolean() ? longs : texts).send();
        }
        moved |= longs.poll() | texts.poll();
        if (random.nextInt(20) == 0) {
          (random.nextBoolean() ? longs : texts).shuffle.sender().flush();
        }
        moved |= longs.finish() | texts.finish();
        if (!moved) {
          longs.releaseAll();
          texts.releaseAll();
          Thread.yield();
        }
      }
      longs.shuffle.close();
      texts.shuffle.close();
      worker.endQuery(query);
    }

    /** One shuffle at this worker. */
    private final class Side {
      final Shuffle shuffle;
      private final LongSender sender;
      private final RowWriter writer;
      private final Batch[] frames = new Batch[3];
      private final int[] sent = new int[2];
      private final int[] received = new int[2];
      private boolean finished;
      private boolean ended;

      Side(Shuffle shuffle) {
        this.shuffle = shuffle;
        sender = shuffle.spec().rowBytes() == Long.BYTES ? shuffle.sender().longs() : null;
        writer = shuffle.sender().rows();
        for (int i = 0; i < frames.length; i++) {
          frames[i] = shuffle.receiver().newBatch();
        }
      }

      boolean over() {
        return finished && ended;
      }

      boolean send() {
        int to = random.nextInt(2);
        return sent[to] < ROWS && (sender != null ? sendLong(to) : sendText(to));
      }

      private boolean sendLong(int to) {
        if (random.nextInt(50) != 0) {
          return count(to, sender.send(to, sent[to], Wait.NONE));
        }
        byte[] row = new byte[Long.BYTES];
        ByteBuffer.wrap(row).order(ByteOrder.LITTLE_ENDIAN).putLong(sent[to]);
        return count(to, shuffle.sender().send(to, row, 0, row.length, Wait.NONE));
      }

      private boolean sendText(int to) {
        int length = lengthOf(sent[to]);
        if (random.nextInt(50) == 0) {
          byte[] row = new byte[length];
          ByteBuffer.wrap(row).order(ByteOrder.LITTLE_ENDIAN).putInt(sent[to]);
          row[length - 1] = (byte) length;
          return count(to, shuffle.sender().send(to, row, 0, length, Wait.NONE));
        }
        Outcome outcome = writer.claim(to, length + random.nextInt(9), Wait.NONE);
        if (outcome == Outcome.DONE) {
          if (random.nextInt(30) == 0) {
            writer.abort();
            return true;
          }
          writer.putInt(0, sent[to]);
          writer.putByte(length - 1, (byte) length);
          writer.commit(length);
        }
        return count(to, outcome);
      }

      private boolean count(int to, Outcome outcome) {
        if (outcome == Outcome.DONE) {
          sent[to]++;
          return true;
        }
        assertEquals(Outcome.WOULD_WAIT, outcome);
        return false;
      }

      boolean finish() {
        if (!finished && sent[0] == ROWS && sent[1] == ROWS) {
          finished = shuffle.sender().finish(Wait.NONE) == Outcome.DONE;
          return finished;
        }
        return false;
      }

      boolean poll() {
        Batch batch = frames[random.nextInt(frames.length)];
        if (random.nextInt(4) == 0) {
          batch.release();
        }
        if (!batch.isEmpty() || ended) {
          return false; // held a little longer
        }
        Outcome outcome = shuffle.receiver().receive(batch, Wait.NONE);
        if (outcome == Outcome.END_OF_STREAM) {
          assertEquals(ROWS, received[0]);
          assertEquals(ROWS, received[1]);
          ended = true;
          return true;
        }
        if (outcome != Outcome.DONE) {
          return false;
        }
        if (random.nextInt(10) == 0) {
          batch.detach();
        }
        int from = batch.sender();
        int rows = 0;
        for (; batch.nextRow(); rows++) {
          check(batch, received[from]++);
        }
        assertEquals(rows, batch.rowCount());
        return true;
      }

      private void check(Batch batch, int expected) {
        int at = batch.rowOffset();
        if (sender != null) {
          assertEquals(expected, batch.getLong(at));
          return;
        }
        assertEquals(lengthOf(expected), batch.rowLength());
        assertEquals(expected, batch.getInt(at));
        assertEquals((byte) lengthOf(expected), batch.getByte(at + batch.rowLength() - 1));
      }

      void releaseAll() {
        for (Batch batch : frames) {
          batch.release();
        }
      }

      private int lengthOf(int number) {
        int length = Integer.BYTES + 1 + Math.floorMod(number * 0x9e3779b9, 300);
        assertTrue(length > Integer.BYTES);
        return length;
      }
    }
  }
}
