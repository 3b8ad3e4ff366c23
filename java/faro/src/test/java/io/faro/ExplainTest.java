package io.faro;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.ExecutorService;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Five of six workers wait for one that is busy with something else: {@code faro explain}, {@code stat} and their exit
 * codes say who waits for what, of whom, and in which stage, whatever call it waits by.
 */
@Timeout(30)
class ExplainTest {
  private static final int STAGE = 1;
  private static final int BUSY = 5; // the worker that makes no call
  private static final int[] WAITING = {0, 1, 2, 3, 4};
  private static final int WAITS = 4; // exit code of explain
  private static final String ROWS = "rows from worker 5, stage 1 of query ";
  private static final String ROOM = "room towards worker 5, stage 1 of query ";
  private static final String OUTCOME = "the outcome of query ";

  @TempDir Path folder;

  /** Taken for a virtual thread, which waits without a native call. */
  private static final class Virtual extends Thread {
    Virtual(Runnable body) {
      super(body, "taken for a virtual thread");
    }
  }

  private interface Call {
    void run(Worker worker, QueryId query) throws Exception;
  }

  /** Each way to wait; what for. */
  private enum Way {
    RECEIVE(ROWS, receiving((shuffle, batch) -> shuffle.receiver().receive(batch))),
    RECEIVE_WITH_LIMIT(
        ROWS, receiving((shuffle, batch) -> shuffle.receiver().receive(batch, Wait.atMost(Duration.ofMinutes(1))))),
    RECEIVE_FROM(ROWS, receiving((shuffle, batch) -> shuffle.receiver().receiveFrom(0, batch))),
    RECEIVE_OBJECTS(ROWS, receiving((shuffle, batch) -> shuffle.receiver().objects(RowCodecs.LONG).next())),
    MERGE(
        ROWS,
        receiving((shuffle, batch) -> shuffle.receiver().merge(RowCodecs.LONG, Comparator.<Long>naturalOrder()).next())),
    RECEIVE_IN_A_CONDITION(
        ROWS,
        receiving(
            (shuffle, batch) ->
                shuffle
                    .worker()
                    .waitUntil(() -> shuffle.receiver().receive(batch, Wait.NONE) != Outcome.WOULD_WAIT))),
    SEND(ROOM, sending((shuffle, row) -> shuffle.sender().longs().send(0, row))),
    SEND_WITH_LIMIT(
        ROOM, sending((shuffle, row) -> shuffle.sender().longs().send(0, row, Wait.atMost(Duration.ofMinutes(1))))),
    SEND_BYTES(ROOM, sending((shuffle, row) -> shuffle.sender().send(0, new byte[8], 0, 8, Wait.FOREVER))),
    SEND_OBJECTS(ROOM, sending((shuffle, row) -> shuffle.sender().objects(RowCodecs.LONG).send(0, row))),
    BROADCAST(ROOM, sending((shuffle, row) -> shuffle.sender().broadcast(new byte[8], 0, 8, Wait.FOREVER))),
    END_QUERY(OUTCOME, Worker::endQuery),
    END_QUERY_WITH_LIMIT(
        OUTCOME, (worker, query) -> ignore(worker.endQuery(query, Wait.atMost(Duration.ofMinutes(1))))),
    END_QUERY_ASYNC(OUTCOME, (worker, query) -> worker.endQueryAsync(query).toCompletableFuture().get());

    final String what;
    final Call call;

    Way(String what, Call call) {
      this.what = what;
      this.call = call;
    }
  }

  private interface Receiving {
    Outcome receive(Shuffle shuffle, Batch batch) throws Exception;
  }

  private interface Sending {
    Outcome send(Shuffle shuffle, long row) throws Exception;
  }

  private static Call receiving(Receiving receiving) {
    return (worker, query) -> {
      ShuffleSpec spec = new ShuffleSpec(query, STAGE, 8, new int[] {BUSY}, WAITING);
      try (Shuffle shuffle = worker.openShuffle(spec);
          Batch batch = shuffle.receiver().newBatch()) {
        ignore(receiving.receive(shuffle, batch));
      }
    };
  }

  private static Call sending(Sending sending) {
    return (worker, query) -> {
      ShuffleSpec spec = new ShuffleSpec(query, STAGE, 8, WAITING, new int[] {BUSY});
      try (Shuffle shuffle = worker.openShuffle(spec)) {
        for (long row = 0; sending.send(shuffle, row) == Outcome.DONE; row++) {}
      }
    };
  }

  private static void ignore(Outcome outcome) {
    assertTrue(outcome != null);
  }

  @ParameterizedTest
  @EnumSource(Way.class)
  void whoWaitsOnAPlatformThread(Way way) throws Exception {
    explain(way, body -> new Thread(body).start());
  }

  @ParameterizedTest
  @EnumSource(Way.class)
  void whoWaitsOnAVirtualThread(Way way) throws Exception {
    VirtualThreads.alsoForTest(Virtual.class);
    try {
      explain(way, body -> new Virtual(body).start());
    } finally {
      VirtualThreads.alsoForTest(null);
    }
  }

  /** Event loops: one thread for all workers, none of which it waits in. */
  @ParameterizedTest
  @EnumSource(value = Way.class, names = {"RECEIVE", "SEND", "END_QUERY"})
  void whoIsWaitedForByAnEventLoop(Way way) throws Exception {
    ExecutorService loop = Executors.newSingleThreadExecutor();
    try (Cluster cluster = cluster()) {
      QueryId query = cluster.beginQuery();
      loop.submit(
              () -> {
                for (int i = 0; i < BUSY; i++) {
                  Worker worker = cluster.worker(i);
                  Turn turn = new Turn(way, worker, query);
                  while (worker.whenReady(turn::run).toCompletableFuture().isDone()) {}
                }
              })
          .get();
      expectExplained(way, query);
      cluster.session(0).cancelQuery(query, "seen enough");
    } finally {
      loop.shutdownNow();
    }
  }

  private static final class Turn {
    private final Way way;
    private final Worker worker;
    private final QueryId query;
    private Shuffle shuffle;
    private Batch batch;

    Turn(Way way, Worker worker, QueryId query) {
      this.way = way;
      this.worker = worker;
      this.query = query;
      if (way == Way.RECEIVE) {
        shuffle = worker.openShuffle(new ShuffleSpec(query, STAGE, 8, new int[] {BUSY}, WAITING));
        batch = shuffle.receiver().newBatch();
      } else if (way == Way.SEND) {
        shuffle = worker.openShuffle(new ShuffleSpec(query, STAGE, 8, WAITING, new int[] {BUSY}));
      }
    }

    boolean run() {
      Outcome outcome =
          way == Way.RECEIVE
              ? shuffle.receiver().receive(batch, Wait.NONE)
              : way == Way.SEND ? shuffle.sender().longs().send(0, 1, Wait.NONE) : worker.endQuery(query, Wait.NONE);
      return outcome != Outcome.WOULD_WAIT;
    }
  }

  private Cluster cluster() {
    return new Cluster(
        2,
        3,
        config ->
            config
                .set(Setting.COUNTERS_FOLDER, folder.toString())
                .set(Setting.RING_BYTES, 4096)
                .set(Setting.TRANSFER_THRESHOLD_BYTES, 1024));
  }

  private void explain(Way way, Executor threads) throws Exception {
    CountDownLatch ended = new CountDownLatch(BUSY);
    try (Cluster cluster = cluster()) {
      QueryId query = cluster.beginQuery();
      for (int i = 0; i < BUSY; i++) {
        Worker worker = cluster.worker(i);
        threads.execute(
            () -> {
              try {
                way.call.run(worker, query);
              } catch (Exception cancelled) {
                // what the test does in the end
              } finally {
                ended.countDown();
              }
            });
      }
      expectExplained(way, query);
      cluster.session(0).cancelQuery(query, "seen enough");
      ended.await();
    }
  }

  private void expectExplained(Way way, QueryId query) throws Exception {
    String all = "(" + BUSY + " workers wait for that)";
    String explained;
    do {
      explained = faro(WAITS, "explain");
    } while (!explained.contains(all));
    List<String> lines = explained.lines().toList();
    for (int i = 0; i < BUSY; i++) {
      String waits = "  worker " + i + " (node " + i / 3 + ", pid " + ProcessHandle.current().pid() + ") waits ";
      String what = " for " + way.what + query.issuer() + ":" + query.counter();
      assertEquals(1, lines.stream().filter(l -> l.startsWith(waits) && l.endsWith(what)).count(), explained);
    }
    String cause = lines.stream().filter(l -> l.endsWith(all)).findFirst().orElseThrow();
    assertTrue(cause.contains("→ worker 5 of node 1 ("), cause);
    assertTrue(cause.contains(": it makes no call of Faro"), cause);
    String shown = faro(0, "stat", "--once");
    assertEquals(BUSY, shown.split(way.what, -1).length - 1, shown);
  }

  /** What the command prints once it exits with this code. */
  private String faro(int code, String... arguments) throws Exception {
    Path command = Path.of(System.getProperty("faro.command"));
    assumeTrue(Files.isExecutable(command), "the faro command is not built: " + command);
    List<String> words = new ArrayList<>(List.of(command.toString()));
    words.addAll(List.of(arguments));
    words.addAll(List.of("--folder", folder.toString(), "--interval", "0.05"));
    ProcessBuilder faro = new ProcessBuilder(words).redirectErrorStream(true);
    faro.environment().remove("LD_PRELOAD"); // a sanitizer's, for the JVM
    String printed;
    int exited;
    do {
      Process process = faro.start();
      printed = new String(process.getInputStream().readAllBytes(), UTF_8);
      exited = process.waitFor();
      assertTrue(exited == code || exited == 0, printed);
    } while (exited != code);
    return printed;
  }
}
