package io.faro;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Timeout;
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

  private static void assertNames(FaroException failure, Code code, String... words) {
    assertEquals(code, failure.code(), failure::toString);
    for (String word : words) {
      assertTrue(failure.getMessage().contains(word), failure::toString);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void anExceptionInAReceiveLoopFailsTheQueryOnEveryNode(int nodes) throws Exception {
    try (Cluster cluster = new Cluster("auto", nodes, 2 / nodes)) {
      QueryId query = cluster.session(0).beginQuery();
      cluster.onEachWorker(
          worker -> {
            if (worker.number() == SENDER) {
              sendAll(worker, query);
            } else {
              BadRow thrown = assertThrows(BadRow.class, () -> receiveBadly(worker, query));
              assertEquals(0, thrown.getSuppressed().length, "closing hides nothing of it");
            }
            assertNames(
                assertThrows(FaroException.class, () -> worker.endQuery(query)),
                Code.QUERY_CANCELLED,
                "worker 1",
                "receiver of stage 1",
                "before its end of stream");
          });
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
  void aReceiverThatStopsBeforeItClosesLetsTheQueryEndWell(int nodes) throws Exception {
    try (Cluster cluster = new Cluster("auto", nodes, 2 / nodes)) {
      QueryId query = cluster.session(0).beginQuery();
      cluster.onEachWorker(
          worker -> {
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
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void aPartThatFailsBeforeItOpensTellsThoseWhoWaitForItsRows(int nodes) throws Exception {
    try (Cluster cluster = new Cluster("auto", nodes, 2 / nodes)) {
      QueryId query = cluster.session(0).beginQuery();
      String[] words = {"worker 0", "io.faro.EndingTest$BadRow: no such table"};
      cluster.onEachWorker(
          worker -> {
            if (worker.number() == SENDER) {
              FaroException told = worker.endQuery(query, new BadRow("no such table"));
              assertNames(told, Code.QUERY_FAILED, words);
            } else {
              FaroException failure =
                  assertThrows(FaroException.class, () -> receiveBadly(worker, query));
              assertNames(failure, Code.QUERY_FAILED, words);
              assertNames(worker.endQuery(query, failure), Code.QUERY_FAILED, words);
            }
          });
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void aPartThatFailsWithAShuffleOpenIsToldSo(int nodes) throws Exception {
    try (Cluster cluster = new Cluster("auto", nodes, 2 / nodes)) {
      QueryId query = cluster.session(0).beginQuery();
      CountDownLatch cancelled = new CountDownLatch(1);
      cluster.onEachWorker(
          worker -> {
            if (worker.number() == SENDER) {
              try (Shuffle shuffle = worker.openShuffle(fromSender(query))) {
                assertEquals(
                    Code.WRONG_STATE,
                    assertThrows(
                            FaroException.class, () -> worker.endQuery(query, new BadRow("early")))
                        .code());
                shuffle.cancel("the table is gone");
              }
              cancelled.countDown();
            }
            cancelled.await(); // a query that has failed opens no shuffle
            FaroException told = worker.endQuery(query, new BadRow("late"));
            if (worker.number() == SENDER) {
              assertNames(told, Code.QUERY_CANCELLED, "the table is gone");
            }
          });
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void aPartThatOnlyEndsFailsThoseWhoWaitForItsRows(int nodes) throws Exception {
    try (Cluster cluster = new Cluster("auto", nodes, 2 / nodes)) {
      QueryId query = cluster.session(0).beginQuery();
      cluster.onEachWorker(
          worker -> {
            FaroException failure =
                assertThrows(
                    FaroException.class,
                    () -> {
                      if (worker.number() != SENDER) {
                        receiveBadly(worker, query);
                      }
                      worker.endQuery(query);
                    });
            assertNames(failure, Code.QUERY_UNOPENED, "worker 0", "stage 1", "worker 1");
            assertEquals(Optional.of(query), failure.query());
            assertEquals(OptionalInt.of(1), failure.stage());
            assertEquals(OptionalInt.of(0), failure.node());
            worker.endQuery(query, failure);
          });
    }
  }

  /** A query that runs can be cancelled again; the first reason stays. */
  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void aQueryThatHasEndedOrWasNeverBegunCannotBeCancelled(int nodes) throws Exception {
    try (Cluster cluster = new Cluster("auto", nodes, 2 / nodes)) {
      QueryId ended = cluster.session(0).beginQuery();
      cluster.onEachWorker(worker -> worker.endQuery(ended));
      QueryId neverBegun = new QueryId(ended.counter() + 1, ended.incarnation(), ended.issuer());
      QueryId unknownIssuer = new QueryId(ended.counter(), ended.incarnation(), nodes);
      for (QueryId query : List.of(ended, neverBegun, unknownIssuer)) {
        FaroException refused =
            assertThrows(FaroException.class, () -> cluster.session(0).cancelQuery(query, "too late"));
        assertEquals(Code.QUERY_ENDED, refused.code());
        assertEquals(Optional.of(query), refused.query());
      }

      QueryId running = cluster.session(0).beginQuery();
      for (String reason : List.of("first", "second")) {
        cluster.session(0).cancelQuery(running, reason);
      }
      cluster.onEachWorker(
          worker ->
            assertNames(
                assertThrows(FaroException.class, () -> worker.endQuery(running)), Code.QUERY_CANCELLED, "first"));
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void workersWhoDisagreeAboutTheReceiversFailTheQuery(int nodes) throws Exception {
    try (Cluster cluster = new Cluster("auto", nodes, 2 / nodes)) {
      QueryId query = cluster.session(0).beginQuery();
      int[] both = {0, 1};
      cluster.onEachWorker(
          worker -> {
            int[] receivers = worker.number() == SENDER ? new int[] {0} : both;
            ShuffleSpec spec = new ShuffleSpec(query, 7, Long.BYTES, new int[] {SENDER}, receivers);
            FaroException failure =
                assertThrows(
                    FaroException.class,
                    () -> {
                      try (Shuffle shuffle = worker.openShuffle(spec)) {
                        while (shuffle.receiver().receive(shuffle.receiver().newBatch()) == Outcome.DONE) {}
                      }
                    });
            assertNames(failure, Code.STAGE_MISMATCH, "stage 7", "worker 0", "worker 1", "receivers 0, 1");
            assertEquals(Category.QUERY, failure.category());
            assertEquals(OptionalInt.of(7), failure.stage());
            worker.endQuery(query, failure);
          });
    }
  }
}
