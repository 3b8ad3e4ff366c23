package io.faro;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
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
        Named.of("LongSender.send, not waiting", (shuffle, to, row) -> shuffle.sender().longs().send(to, row, Wait.NONE)),
        Named.of("MemorySender.sendRows, not waiting", (shuffle, to, row) -> sendRow(shuffle, to, row, Wait.NONE)),
        Named.of("MemorySender.sendRows", (shuffle, to, row) -> sendRow(shuffle, to, row, Wait.FOREVER)),
        Named.of("LongSender.send", (shuffle, to, row) -> shuffle.sender().longs().send(to, row)),
        Named.of(
            "RowWriter.claim, not waiting",
            (shuffle, to, row) -> {
              RowWriter writer = shuffle.sender().rows();
              return commit(writer, writer.claim(to, Long.BYTES, Wait.NONE), row);
            }),
        Named.of(
            "RowWriter.claim",
            (shuffle, to, row) -> {
              RowWriter writer = shuffle.sender().rows();
              return commit(writer, writer.claim(to, Long.BYTES), row);
            }));
  }

  private static <X extends Exception> Outcome sendRow(Shuffle shuffle, int to, long row, Wait<X> wait) throws X {
    ByteBuffer memory = ByteBuffer.allocateDirect(12).order(ByteOrder.nativeOrder()).putLong(4, row).putInt(0, to);
    MemorySender sender = shuffle.sender().memory();
    assertEquals(1, sender.sendRows(memory.slice(4, 8), 0, 1, memory.asIntBuffer(), wait));
    return sender.stoppedBy();
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
          assertEquals(Outcome.DONE, shuffle.sender().finish());
          List<Long> received = new ArrayList<>();
          shuffle.receiver().objects(RowCodecs.LONG).forEach(received::add);
          assertEquals(LongStream.range(0, ROWS).boxed().toList(), received);
        });
  }

  @Test
  void aClaimForItThatIsNotCommittedIsNoRow() throws Exception {
    asSender(
        (shuffle, dropped) -> {
          long before = dropped.getAsLong();
          RowWriter writer = shuffle.sender().rows();
          assertEquals(Outcome.DONE, writer.claim(STOPPED, Long.BYTES, Wait.NONE));
          writer.abort();
          assertEquals(before, dropped.getAsLong());
          assertEquals(Outcome.DONE, shuffle.sender().finish());
          shuffle.receiver().stop(); // what it sent to itself
        });
  }

  private interface Task {
    void run(Shuffle shuffle, LongSupplier dropped) throws Exception;
  }

  /** Runs the task as worker RUNNING, which knows that worker STOPPED has stopped; counts what it dropped. */
  private static void asSender(Task task) throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 2)) {
      LongSupplier dropped =
          () -> cluster.session(0).metrics().workers().get(RUNNING).rowsDropped();
      cluster.shuffle(Long.BYTES, (worker, shuffle) -> {
        if (worker.number() == STOPPED) {
          shuffle.receiver().stop();
          assertEquals(Outcome.DONE, shuffle.sender().finish());
        } else {
          assertEquals(Outcome.DONE, sendUntil(worker, shuffle, dropped));
          task.run(shuffle, dropped);
        }
      });
    }
  }

  private static Outcome sendUntil(Worker worker, Shuffle shuffle, LongSupplier dropped)
      throws InterruptedException {
    LongSender sender = shuffle.sender().longs();
    return worker.waitUntil(
        () -> {
          sender.send(STOPPED, 0, Wait.NONE);
          return dropped.getAsLong() > 0;
        }, Wait.atMost(Duration.ofSeconds(20)));
  }
}
