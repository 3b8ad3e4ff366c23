package io.faro;

import static io.faro.Checks.assertSays;
import static io.faro.Checks.failsBy;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** How queries end when a worker's part does not end well. Worker 0 sends, worker 1 receives. */
@Timeout(60)
class EndingTest {
  private static final int SENDER = 0;
  private static final int ROWS = 10;

  /** What an engine's operator throws. */
  private static final class BadRow extends RuntimeException {
    private static final long serialVersionUID = 1L;

    BadRow(String message) {
      super(message);
    }
  }

  private static ShuffleSpec fromSender(QueryId query) {
    return new ShuffleSpec(query, 1, Long.BYTES, new int[] {SENDER}, new int[] {1});
  }

  private static void sendAll(Worker worker, QueryId query) throws InterruptedException {
    try (Shuffle shuffle = worker.openShuffle(fromSender(query))) {
      LongSender sender = shuffle.sender().longs();
      for (long row = 0; row < ROWS; row++) {
        Outcome sent = sender.send(0, row);
        if (sent == Outcome.STOPPED) {
          break; // the receiver was faster
        }
        assertEquals(Outcome.DONE, sent);
      }
      assertEquals(Outcome.DONE, shuffle.sender().finish());
    }
  }

  private interface Part {
    void run(Worker worker, QueryId query) throws Exception;
  }

  /** Runs a query of both workers, which are on one node or on two. */
  private static void onBoth(int nodes, Part part) throws Exception {
    try (Cluster cluster = new Cluster("auto", nodes, 2 / nodes)) {
      QueryId query = cluster.beginQuery();
      cluster.onEachWorker(worker -> part.run(worker, query));
    }
  }

  private static void receiveBadly(Worker worker, QueryId query) throws InterruptedException {
    try (Shuffle shuffle = worker.openShuffle(fromSender(query))) {
      Batch batch = shuffle.receiver().newBatch();
      while (shuffle.receiver().receive(batch) == Outcome.DONE) {
        throw new BadRow("negative price");
      }
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void anExceptionInAReceiveLoopFailsTheQueryOnEveryNode(int nodes) throws Exception {
    onBoth(nodes, (worker, query) -> {
      if (worker.number() == SENDER) {
        sendAll(worker, query);
      } else {
        BadRow thrown = assertThrows(BadRow.class, () -> receiveBadly(worker, query));
        assertEquals(0, thrown.getSuppressed().length, "closing hides nothing of it");
      }
      String[] words = {"worker 1", "receiver of stage 1", "before its end of stream"};
      failsBy(Code.QUERY_CANCELLED, () -> worker.endQuery(query), words);
    });
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void aReceiverThatStopsBeforeItClosesLetsTheQueryEndWell(int nodes) throws Exception {
    onBoth(nodes, (worker, query) -> {
      if (worker.number() == SENDER) {
        sendAll(worker, query);
      } else {
        try (Shuffle shuffle = worker.openShuffle(fromSender(query))) {
          shuffle.receiver().stop();
        }
      }
      worker.endQuery(query);
    });
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void aPartThatFailsBeforeItOpensTellsThoseWhoWaitForItsRows(int nodes) throws Exception {
    String[] words = {"worker 0", "io.faro.EndingTest$BadRow: no such table"};
    onBoth(nodes, (worker, query) -> {
      RuntimeException why = new BadRow("no such table");
      if (worker.number() != SENDER) {
        why = failsBy(Code.QUERY_FAILED, () -> receiveBadly(worker, query), words);
      }
      assertSays(worker.endQuery(query, why), Code.QUERY_FAILED, words);
    });
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void aPartThatEndsWithAShuffleOpenIsToldSoAndACancelIsTheCauseAtOnce(int nodes) throws Exception {
    CountDownLatch cancelled = new CountDownLatch(1);
    onBoth(nodes, (worker, query) -> {
      if (worker.number() == SENDER) {
        try (Shuffle shuffle = worker.openShuffle(fromSender(query))) {
          failsBy(Code.WRONG_STATE, () -> worker.endQuery(query));
          shuffle.cancel("the table is gone");
        }
        cancelled.countDown();
      }
      cancelled.await(); // a query that has failed opens no shuffle
      FaroException told = worker.endQuery(query, new BadRow("late"));
      if (worker.number() == SENDER) {
        assertSays(told, Code.QUERY_CANCELLED, "the table is gone");
      }
    });
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void aPartThatOnlyEndsFailsThoseWhoWaitForItsRows(int nodes) throws Exception {
    onBoth(nodes, (worker, query) -> {
      Executable part = () -> {
        if (worker.number() != SENDER) {
          receiveBadly(worker, query);
        }
        worker.endQuery(query);
      };
      FaroException failure = failsBy(Code.QUERY_UNOPENED, part, "worker 0", "stage 1", "worker 1");
      assertEquals(Optional.of(query), failure.query());
      assertEquals(OptionalInt.of(1), failure.stage());
      assertEquals(OptionalInt.of(0), failure.node());
      worker.endQuery(query, failure);
    });
  }

  /** A query that runs can be cancelled again; the first reason stays. */
  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void aQueryThatHasEndedOrWasNeverBegunCannotBeCancelled(int nodes) throws Exception {
    try (Cluster cluster = new Cluster("auto", nodes, 2 / nodes)) {
      QueryId ended = cluster.beginQuery();
      cluster.onEachWorker(worker -> worker.endQuery(ended));
      QueryId neverBegun = new QueryId(ended.counter() + 1, ended.incarnation(), ended.issuer());
      QueryId unknownIssuer = new QueryId(ended.counter(), ended.incarnation(), nodes);
      for (QueryId query : List.of(ended, neverBegun, unknownIssuer)) {
        FaroException refused = failsBy(Code.QUERY_ENDED, () -> cluster.session(0).cancelQuery(query, "too late"));
        assertEquals(Optional.of(query), refused.query());
      }

      QueryId running = cluster.beginQuery();
      for (String reason : List.of("first", "second")) {
        cluster.session(0).cancelQuery(running, reason);
      }
      cluster.onEachWorker(worker -> failsBy(Code.QUERY_CANCELLED, () -> worker.endQuery(running), "first"));
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void workersWhoDisagreeAboutTheReceiversFailTheQuery(int nodes) throws Exception {
    onBoth(nodes, (worker, query) -> {
      int[] receivers = worker.number() == SENDER ? new int[] {0} : new int[] {0, 1};
      ShuffleSpec spec = new ShuffleSpec(query, 7, Long.BYTES, new int[] {SENDER}, receivers);
      Executable part = () -> {
        try (Shuffle shuffle = worker.openShuffle(spec)) {
          while (shuffle.receiver().receive(shuffle.receiver().newBatch()) == Outcome.DONE) {}
        }
      };
      String[] words = {"stage 7", "worker 0", "worker 1", "receivers 0, 1"};
      FaroException failure = failsBy(Code.STAGE_MISMATCH, part, words);
      assertEquals(Category.QUERY, failure.category());
      assertEquals(OptionalInt.of(7), failure.stage());
      worker.endQuery(query, failure);
    });
  }
}
