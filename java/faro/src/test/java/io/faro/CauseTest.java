package io.faro;

import static io.faro.Checks.assertSays;
import static io.faro.Checks.check;
import static io.faro.Checks.failsBy;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.Comparator;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Why a query has failed, as each worker is told it: worker 1 fails with an exception, and says so, in each order in which
 * that can be written. Worker 0 waits for its rows.
 */
@Timeout(120)
class CauseTest {
  /** In the time that this takes, a close that is not explained is told to nobody. */
  private static final long TELL_DELAY_NANOS = 100_000_000;

  private static final String TEXT = "worker 1 failed: io.faro.CauseTest$BadRow: negative price";

  /** What an engine's operator throws. */
  private static final class BadRow extends RuntimeException {
    private static final long serialVersionUID = 1L;

    BadRow() {
      super("negative price");
    }
  }

  private interface Part {
    FaroException fail(Worker worker, QueryId query) throws Exception;
  }

  private static ShuffleSpec spec(QueryId query, int stage, int rowBytes) {
    return new ShuffleSpec(query, stage, rowBytes);
  }

  private static void operator() {
    throw new BadRow();
  }

  private enum Way implements Part {
    CLOSES_BY_TRY {
      @Override
      public FaroException fail(Worker worker, QueryId query) throws Exception {
        try (Shuffle first = worker.openShuffle(spec(query, 1, Long.BYTES));
            Shuffle second = worker.openShuffle(spec(query, 2, 0))) {
          check(first.sender().longs().send(0, 1));
          check(second.sender().objects(RowCodecs.STRING).send(1, "one"));
          operator();
        } catch (BadRow failure) {
          return worker.endQuery(query, failure);
        }
        return null;
      }
    },
    ENDS_BEFORE_IT_CLOSES {
      @Override
      public FaroException fail(Worker worker, QueryId query) throws Exception {
        try (Shuffle shuffle = worker.openShuffle(spec(query, 1, Long.BYTES))) {
          LongSender sender = shuffle.sender().longs();
          try {
            operator();
          } catch (BadRow failure) {
            FaroException told = worker.endQuery(query, failure);
            failsBy(Code.CLOSED, () -> sender.send(0, 1), "stage 1");
            failsBy(Code.CLOSED, () -> shuffle.receiver().receive(shuffle.receiver().newBatch()), "stage 1");
            failsBy(Code.CLOSED, () -> shuffle.cancel("late"));
            assertEquals(1, shuffle.metrics().stage());
            return told;
          }
        }
        return null;
      }
    },
    CLOSES_NOTHING {
      @Override
      public FaroException fail(Worker worker, QueryId query) throws Exception {
        worker.openShuffle(spec(query, 1, Long.BYTES));
        worker.openShuffle(spec(query, 2, Long.BYTES));
        FaroException told = worker.endQuery(query, new BadRow());
        assertEquals(0, worker.session().metrics().workers().get(worker.session().workers().indexOf(worker)).openShuffles());
        return told;
      }
    },
    HOLDS_A_BATCH_AND_A_CLAIM {
      @Override
      public FaroException fail(Worker worker, QueryId query) throws Exception {
        try (Shuffle shuffle = worker.openShuffle(spec(query, 1, Long.BYTES))) {
          check(shuffle.sender().longs().send(1, 5));
          shuffle.sender().flush();
          Batch batch = shuffle.receiver().newBatch();
          check(shuffle.receiver().receive(batch));
          RowWriter row = shuffle.sender().rows();
          check(row.claim(0, Long.BYTES));
          operator();
        } catch (BadRow failure) {
          return worker.endQuery(query, failure);
        }
        return null;
      }
    },
    MERGES {
      @Override
      public FaroException fail(Worker worker, QueryId query) throws Exception {
        try (ObjectShuffle<String> shuffle =
            worker.openShuffle(spec(query, 1, 0).withRowsOf(RowCodecs.STRING))) {
          shuffle.merge(Comparator.naturalOrder());
          operator();
        } catch (BadRow failure) {
          return worker.endQuery(query, failure);
        }
        return null;
      }
    },
    DOES_NOT_WAIT {
      @Override
      public FaroException fail(Worker worker, QueryId query) {
        worker.openShuffle(spec(query, 1, Long.BYTES)).close();
        return worker.endQuery(query, new BadRow(), Wait.NONE);
      }
    },
    ENDS_ASYNCHRONOUSLY {
      @Override
      public FaroException fail(Worker worker, QueryId query) {
        worker.openShuffle(spec(query, 1, Long.BYTES)).close();
        return worker.endQueryAsync(query, new BadRow()).toCompletableFuture().join();
      }
    };
  }

  /** Worker 0 waits until the query fails; why it did. */
  private static FaroException waitForRows(Worker worker, QueryId query, int rowBytes) throws Exception {
    FaroException seen = assertThrows(FaroException.class, () -> {
      try (Shuffle shuffle = worker.openShuffle(spec(query, 1, rowBytes))) {
        Batch batch = shuffle.receiver().newBatch();
        while (shuffle.receiver().receive(batch) == Outcome.DONE) {}
      }
    });
    assertSays(worker.endQuery(query, seen), seen.code(), seen.getMessage());
    return seen;
  }

  @ParameterizedTest
  @EnumSource(Way.class)
  void whatWasThrownIsWhatEveryWorkerIsTold(Way way) throws Exception {
    for (int nodes = 1; nodes <= 2; nodes++) {
      try (Cluster cluster = new Cluster("auto", nodes, 2 / nodes)) {
        while (!failsInTime(cluster, way)) {} // a machine that was too slow has shown nothing
      }
    }
  }

  private static boolean failsInTime(Cluster cluster, Way way) throws Exception {
    QueryId query = cluster.beginQuery();
    FaroException[] told = new FaroException[2];
    long[] took = new long[1];
    cluster.onEachWorker(worker -> {
      if (worker.number() == 0) {
        told[0] = waitForRows(worker, query, way == Way.MERGES ? 0 : Long.BYTES);
      } else {
        long begin = System.nanoTime();
        told[1] = way.fail(worker, query);
        took[0] = System.nanoTime() - begin;
      }
    });
    if (took[0] >= TELL_DELAY_NANOS) {
      return false;
    }
    for (FaroException why : told) {
      assertEquals(Code.QUERY_FAILED, why.code(), why::toString);
      assertSays(why, Code.QUERY_FAILED, TEXT);
    }
    return true;
  }
}
