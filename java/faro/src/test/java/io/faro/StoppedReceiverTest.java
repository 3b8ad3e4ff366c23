package io.faro;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.time.Duration;
import java.util.function.LongSupplier;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** One of two receivers has stopped: its rows are dropped and counted, the other's arrive. */
@Timeout(60)
class StoppedReceiverTest {
  private static final int RUNNING = 0; // the sender itself
  private static final int STOPPED = 1;
  private static final int ROWS = 100;

  /** One way to send a row of eight bytes. */
  private interface Way {
    Outcome send(Shuffle shuffle, int receiver, long row) throws Exception;
  }

  static Stream<Named<Way>> ways() {
    return Stream.of(
        Named.of("LongSender.trySend", (shuffle, to, row) -> shuffle.longSender().trySend(to, row)),
        Named.of("LongSender.send", (shuffle, to, row) -> shuffle.longSender().send(to, row)),
        Named.of(
            "RowWriter.tryClaim",
            (shuffle, to, row) -> {
              RowWriter writer = shuffle.rowWriter();
              return commit(writer, writer.tryClaim(to, Long.BYTES), row);
            }),
        Named.of(
            "RowWriter.claim",
            (shuffle, to, row) -> {
              RowWriter writer = shuffle.rowWriter();
              return commit(writer, writer.claim(to, Long.BYTES), row);
            }));
  }

  private static Outcome commit(RowWriter writer, Outcome claimed, long row) {
    if (claimed == Outcome.DONE) {
      writer.putLong(0, row);
      writer.commit(Long.BYTES);
    }
    return claimed;
  }

  @ParameterizedTest
  @MethodSource("ways")
  void eachRowForItIsCountedAsDropped(Way way) throws Exception {
    asSender(
        (shuffle, dropped) -> {
          long before = dropped.getAsLong();
          for (long row = 0; row < ROWS; row++) {
            assertEquals(Outcome.DONE, way.send(shuffle, RUNNING, row));
            assertEquals(Outcome.DONE, way.send(shuffle, STOPPED, row));
          }
          assertEquals(before + ROWS, dropped.getAsLong());
          assertEquals(Outcome.DONE, shuffle.finish());
          long[] expected = LongStream.range(0, ROWS).toArray();
          assertArrayEquals(expected, received(shuffle));
        });
  }

  @Test
  void aClaimForItThatIsNotCommittedIsNoRow() throws Exception {
    asSender(
        (shuffle, dropped) -> {
          long before = dropped.getAsLong();
          RowWriter writer = shuffle.rowWriter();
          assertEquals(Outcome.DONE, writer.tryClaim(STOPPED, Long.BYTES));
          writer.abort();
          assertEquals(before, dropped.getAsLong());
          assertEquals(Outcome.DONE, shuffle.finish());
          shuffle.stop(); // what it sent to itself
        });
  }

  private static long[] received(Shuffle shuffle) throws InterruptedException {
    LongStream.Builder rows = LongStream.builder();
    try (Frame frame = shuffle.newFrame()) {
      while (shuffle.take(frame) == Outcome.DONE) {
        for (int i = 0; i < frame.rowCount(); i++) {
          rows.add(frame.getLong(Long.BYTES * i));
        }
      }
    }
    return rows.build().toArray();
  }

  private interface Task {
    void run(Shuffle shuffle, LongSupplier dropped) throws Exception;
  }

  /** Runs the task as worker RUNNING, which knows that worker STOPPED has stopped; counts what it dropped. */
  private static void asSender(Task task) throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 2)) {
      QueryId query = cluster.session(0).beginQuery();
      LongSupplier dropped =
          () -> cluster.session(0).metrics().workers().get(RUNNING).rowsDropped();
      cluster.onEachWorker(
          worker -> {
            try (Shuffle shuffle = worker.openShuffle(new ShuffleSpec(query, 1, Long.BYTES))) {
              if (worker.number() == STOPPED) {
                shuffle.stop();
                assertEquals(Outcome.DONE, shuffle.finish());
              } else {
                assertEquals(Outcome.DONE, sendUntil(worker, shuffle, dropped));
                task.run(shuffle, dropped);
              }
            }
            worker.endQuery(query);
          });
    }
  }

  private static Outcome sendUntil(Worker worker, Shuffle shuffle, LongSupplier dropped)
      throws InterruptedException {
    LongSender sender = shuffle.longSender();
    return worker.waitUntil(
        () -> {
          sender.trySend(STOPPED, 0);
          return dropped.getAsLong() > 0;
        },
        Duration.ofSeconds(20));
  }
}
