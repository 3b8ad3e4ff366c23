package io.faro;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * A JVM that is stopped for less than the time limit, or whose worker makes no call for a while: its sender waits, its
 * node's other queries go on, nobody is lost, and in the end every row arrives.
 */
@Timeout(60)
class StalledPeerTest {
  private static final Duration STALL = Duration.ofSeconds(1);
  // That a loaded machine adds to a stall what it likes: it stays shorter.
  private static final Duration LIVENESS = Duration.ofSeconds(20);
  private static final int ROWS = 200_000; // many times what the ring holds
  private static final int SENDER = 0;
  private static final int OTHER = 1; // of the same node
  private static final int RECEIVER = 2; // of node 1

  enum Stall {
    PAUSED,
    SILENT
  }

  private static Session open(int node, String nodes, String transport) throws InterruptedException {
    return Session.open(
        Cluster.config(node, List.of(nodes.split(",")))
            .workers(2)
            .set(Setting.RING_BYTES, "32 KiB")
            .set(Setting.LIVENESS_TIMEOUT_MS, LIVENESS.toMillis())
            .set(Setting.WAIT_SLEEP_MS, 20)
            .set(Setting.TRANSPORT, transport)
            .build());
  }

  private static Shuffle open(Worker worker, QueryId query) throws Exception {
    return worker.openShuffle(
        new ShuffleSpec(query, 1, Long.BYTES, new int[] {SENDER}, new int[] {RECEIVER}));
  }

  /** Node 1, in a JVM of its own: takes some rows, says so and makes no call until it is told to go on. */
  public static final class Receiver {
    private static long rows;
    private static long sum;

    public static void main(String[] arguments) throws Exception {
      try (Session session = open(1, arguments[0], arguments[1])) {
        Worker worker = session.workers().get(0);
        QueryId query = ChildJvm.readQuery();
        session.declareQuery(query, SENDER, RECEIVER);
        try (Shuffle shuffle = open(worker, query)) {
          take(shuffle, Long.parseLong(arguments[2]));
          System.out.println("there");
          ChildJvm.readLine();
          take(shuffle, Long.MAX_VALUE);
        }
        worker.endQuery(query);
        System.out.println(rows + " " + sum);
      }
    }

    private static void take(Shuffle shuffle, long until) throws InterruptedException {
      try (Batch batch = shuffle.receiver().newBatch()) {
        while (rows < until && shuffle.receiver().receive(batch) == Outcome.DONE) {
          for (int i = 0; i < batch.rowCount(); i++) {
            sum += batch.getLong(i * Long.BYTES);
          }
          rows += batch.rowCount();
        }
      }
    }
  }

  @ParameterizedTest
  @CsvSource({"PAUSED,0,shm", "PAUSED,100000,tcp", "SILENT,100000,shm", "SILENT,0,tcp"})
  void isNotLostAndGetsEveryRow(Stall stall, int rowsBefore, String transport) throws Exception {
    String nodes = String.join(",", Cluster.heldAddresses(2));
    try (ChildJvm other =
            new ChildJvm(Receiver.class, nodes, transport, Integer.toString(rowsBefore));
        Session session = open(0, nodes, transport)) {
      QueryId query = session.beginQuery();
      session.declareQuery(query, SENDER, RECEIVER);
      other.tell(query);
      CompletableFuture<Void> sending = CompletableFuture.runAsync(() -> send(session, query));
      sending.exceptionally(
          problem -> {
            other.kill(); // else it would wait for rows
            return null;
          });
      assertEquals("there", lineOf(other, sending));
      if (stall == Stall.PAUSED) {
        other.stop();
      }
      untilTheRingIsFull(session, sending);
      anotherQueryGoesOn(session);
      assertEquals(
          Outcome.DEADLINE,
          session.workers().get(OTHER).waitUntil(() -> false, Wait.atMost(STALL)));
      other.tell("go on");
      if (stall == Stall.PAUSED) {
        other.goOn();
      }
      assertEquals(ROWS + " " + (long) ROWS * (ROWS - 1) / 2, lineOf(other, sending));
      sending.get();
    }
  }

  /** Throws why sending failed, if that has ended the other JVM. */
  private static String lineOf(ChildJvm other, CompletableFuture<Void> sending) throws Exception {
    String line = other.line();
    if (line == null && sending.isDone()) {
      sending.get();
    }
    return line;
  }

  private static void send(Session session, QueryId query) {
    Worker worker = session.workers().get(SENDER);
    try {
      try (Shuffle shuffle = open(worker, query)) {
        LongSender sender = shuffle.sender().longs();
        for (long row = 0; row < ROWS; row++) {
          assertEquals(Outcome.DONE, sender.send(0, row));
        }
        assertEquals(Outcome.DONE, shuffle.sender().finish());
      }
      worker.endQuery(query);
    } catch (Exception problem) {
      throw new IllegalStateException(problem);
    }
  }

  /** A sender that has rows left sleeps for nothing else: every 20 ms anew, the second time after this call. */
  private static void untilTheRingIsFull(Session session, CompletableFuture<Void> sending)
      throws InterruptedException {
    long before = sender(session).sleeps();
    while (!sending.isDone() && sender(session).sleeps() < before + 2) {
      if (Thread.interrupted()) {
        throw new InterruptedException("the ring is not full: " + sender(session));
      }
      Thread.yield();
    }
    if (sending.isDone()) {
      sending.join(); // throws why it failed
    }
    assertTrue(sender(session).rowsSent() < ROWS, "all rows are sent, though nobody takes them");
  }

  private static WorkerMetrics sender(Session session) {
    return session.metrics().workers().get(SENDER);
  }

  private static void anotherQueryGoesOn(Session session) throws InterruptedException {
    Worker worker = session.workers().get(OTHER);
    QueryId alone = session.beginQuery();
    session.declareQuery(alone, OTHER);
    try (Shuffle own =
        worker.openShuffle(
            new ShuffleSpec(alone, 1, Long.BYTES, new int[] {OTHER}, new int[] {OTHER}))) {
      own.sender().longs().send(0, 7);
      assertEquals(Outcome.DONE, own.sender().finish());
      Batch batch = own.receiver().newBatch();
      assertEquals(Outcome.DONE, own.receiver().receive(batch));
      assertEquals(7, batch.getLong(0));
      assertEquals(Outcome.END_OF_STREAM, own.receiver().receive(batch));
    }
    worker.endQuery(alone);
  }
}
