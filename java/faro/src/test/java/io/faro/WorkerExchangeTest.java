package io.faro;

import static io.faro.Checks.assertSays;
import static io.faro.Checks.failsBy;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.stream.Stream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * {@link Worker#exchange} and {@link QueryScope} over real sessions: plans whose workers send and receive at the same
 * time, and every way in which that ends.
 */
@Timeout(60)
class WorkerExchangeTest {
  private static final int WORKERS = 4; // two on each of two nodes
  private static final Function<ShuffleSender, Outcome> NOTHING = sender -> Outcome.END_OF_STREAM;
  private static final Consumer<Batch> IGNORE = batch -> {};

  /** Sends the integers from {@code next} up to {@code end}, some at a time. */
  private static final class Integers implements Function<ShuffleSender, Outcome> {
    private long next;
    private final long end;

    Integers(long next, long end) {
      this.next = next;
      this.end = end;
    }

    @Override
    public Outcome apply(ShuffleSender sender) {
      LongSender longs = sender.longs();
      for (int i = 0; i < 100; i++, next++) {
        if (next == end) {
          return Outcome.END_OF_STREAM;
        }
        Outcome sent = longs.send(Partition.FINALIZER.receiverOf(next, sender.receiverCount()), next, Wait.NONE);
        if (sent != Outcome.DONE) {
          return sent;
        }
      }
      return Outcome.DONE;
    }
  }

  /** Counts the rows of all workers. */
  private static final class Total {
    final AtomicLong count = new AtomicLong();
    final AtomicLong sum = new AtomicLong();

    void add(Batch batch) {
      for (int i = 0; i < batch.rowCount(); i++) {
        count.incrementAndGet();
        sum.addAndGet(batch.getLong(i * Long.BYTES));
      }
    }
  }

  private interface Part {
    void run(Worker worker, QueryId query) throws Exception;
  }

  private static Cluster cluster(String transport) {
    return new Cluster(
        2,
        2,
        config ->
            config
                .set(Setting.TRANSPORT, transport)
                .set(Setting.RING_BYTES, "4KiB")
                .set(Setting.TRANSFER_THRESHOLD_BYTES, "1KiB")
                .set(Setting.DRAIN_DELAY_US, 1));
  }

  private static Shuffle open(Worker worker, QueryId query, int stage) {
    return worker.openShuffle(new ShuffleSpec(query, stage, Long.BYTES));
  }

  /** Each worker runs the part, and ends it well. How many frames they have spilled. */
  private static long run(String transport, Part part) throws Exception {
    try (Cluster cluster = cluster(transport)) {
      QueryId query = cluster.beginQuery();
      cluster.onEachWorker(
          worker -> {
            part.run(worker, query);
            worker.endQuery(query);
          });
      return Stream.of(cluster.session(0), cluster.session(1))
          .flatMap(session -> session.metrics().workers().stream())
          .mapToLong(WorkerMetrics::framesSpilled)
          .sum();
    }
  }

  private static void assertEnds(Outcome outcome) {
    assertEquals(Outcome.END_OF_STREAM, outcome);
  }

  @ParameterizedTest
  @ValueSource(strings = {"tcp", "shm"})
  void allRowsComeToTheirWorkerAndNoneIsSpilled(String transport) throws Exception {
    long rows = 20_000; // far more than rings hold
    Total total = new Total();
    AtomicLong elsewhere = new AtomicLong();
    long spilled = run(transport, (worker, query) -> {
      int w = worker.number();
      try (Shuffle shuffle = open(worker, query, 0)) {
        Integers integers = new Integers(w * rows, (w + 1) * rows);
        Consumer<Batch> take = batch -> {
          total.add(batch);
          for (int i = 0; i < batch.rowCount(); i++) {
            if (Partition.FINALIZER.receiverOf(batch.getLong(i * Long.BYTES), WORKERS) != w) {
              elsewhere.incrementAndGet();
            }
          }
        };
        assertEnds(worker.exchange(shuffle, integers, take));
        assertEnds(worker.exchange(shuffle, integers, take));
        assertEnds(worker.exchange(shuffle, null, null)); // both sides are over
      }
    });
    long all = WORKERS * rows;
    assertEquals(all, total.count.get());
    assertEquals(all * (all - 1) / 2, total.sum.get());
    assertEquals(0, elsewhere.get());
    assertEquals(0, spilled, "frames; whoever only waits to send would spill them at once");
  }

  @ParameterizedTest
  @ValueSource(strings = {"tcp", "shm"})
  void aWorkerReceivesOfOneShuffleAndSendsToTheNext(String transport) throws Exception {
    long rows = 10_000;
    Total total = new Total();
    long spilled = run(transport, (worker, query) -> {
      long first = worker.number() * rows;
      Deque<Long> between = new ArrayDeque<>();
      try (Shuffle from = open(worker, query, 0);
          Shuffle to = open(worker, query, 1)) {
        ExchangePart changes = ExchangePart.of(from, new Integers(first, first + rows), batch -> {
          for (int i = 0; i < batch.rowCount(); i++) {
            between.add(batch.getLong(i * Long.BYTES) * 3 / 2);
          }
        });
        ExchangePart sends = ExchangePart.of(to, sender -> {
          for (; !between.isEmpty(); between.remove()) {
            int receiver = Partition.FINALIZER.receiverOf(between.element(), WORKERS);
            Outcome sent = sender.longs().send(receiver, between.element(), Wait.NONE);
            if (sent != Outcome.DONE) {
              return sent;
            }
          }
          return changes.hasEnded() ? Outcome.END_OF_STREAM : Outcome.WOULD_WAIT;
        }, total::add);
        assertEnds(worker.exchange(List.of(changes, sends)));
        assertTrue(changes.hasEnded() && sends.hasEnded());
      }
    });
    long expected = 0;
    for (long n = 0; n < WORKERS * rows; n++) {
      expected += n * 3 / 2;
    }
    assertEquals(WORKERS * rows, total.count.get());
    assertEquals(expected, total.sum.get());
    assertEquals(0, spilled);
  }

  @ParameterizedTest
  @ValueSource(strings = {"tcp", "shm"})
  void objectsAreSentAndReceivedOneByOne(String transport) throws Exception {
    int each = 3000;
    Set<String> received = ConcurrentHashMap.newKeySet();
    run(transport, (worker, query) -> {
      int[] next = {worker.number() * each};
      int end = next[0] + each;
      try (ObjectShuffle<String> shuffle = worker.openShuffle(ShuffleSpec.repartition(query, 0).withRowsOf(RowCodecs.STRING))) {
        assertEnds(worker.exchange(shuffle, sender -> {
          for (int i = 0; i < 100; i++, next[0]++) {
            if (next[0] == end) {
              return Outcome.END_OF_STREAM;
            }
            Outcome sent = sender.send(next[0] % WORKERS, "row " + next[0], Wait.NONE);
            if (sent != Outcome.DONE) {
              return sent;
            }
          }
          return Outcome.DONE;
        }, received::add));
      }
    });
    assertEquals(WORKERS * each, received.size());
    assertTrue(received.contains("row 0") && received.contains("row " + (WORKERS * each - 1)));
  }

  @ParameterizedTest
  @ValueSource(strings = {"tcp", "shm"})
  void aSideInWhichAWorkerTakesNoPartHasNoFunction(String transport) throws Exception {
    long rows = 5000;
    Total total = new Total();
    run(transport, (worker, query) -> {
      int w = worker.number();
      ShuffleSpec spec = new ShuffleSpec(query, 0, Long.BYTES, new int[] {0, 1}, new int[] {1, 2, 3});
      try (Shuffle shuffle = worker.openShuffle(spec)) {
        Integers produce = new Integers(0, rows);
        Consumer<Batch> consume = total::add;
        String[] receiver = {"is no receiver of stage 0", "a function `consume`"};
        switch (w) {
          case 0 -> failsBy(Code.WRONG_STATE, () -> worker.exchange(shuffle, produce, consume), receiver);
          case 1 -> {
            failsBy(Code.WRONG_STATE, () -> worker.exchange(shuffle, null, consume), "is a sender of stage 0", "no function `produce`");
            failsBy(Code.WRONG_STATE, () -> worker.exchange(shuffle, produce, null), "is a receiver of stage 0");
          }
          default -> failsBy(Code.WRONG_STATE, () -> worker.exchange(shuffle, produce, consume), "is no sender of stage 0");
        }
        assertEnds(worker.exchange(shuffle, w < 2 ? produce : null, w > 0 ? consume : null));
      }
    });
    assertEquals(2 * rows, total.count.get());
  }

  @ParameterizedTest
  @ValueSource(strings = {"tcp", "shm"})
  void afterALimitHasPassedTheSameCallGoesOn(String transport) throws Exception {
    Total total = new Total();
    AtomicInteger deadlines = new AtomicInteger();
    run(transport, (worker, query) -> {
      Integers integers = new Integers(0, 1000);
      boolean[] maySend = {false};
      Function<ShuffleSender, Outcome> produce = sender -> maySend[0] ? integers.apply(sender) : Outcome.WOULD_WAIT;
      try (Shuffle shuffle = open(worker, query, 0)) {
        assertEquals(Outcome.DEADLINE, worker.exchange(shuffle, produce, total::add, Wait.atMost(Duration.ofMillis(1))));
        deadlines.incrementAndGet();
        maySend[0] = true;
        Outcome outcome;
        do {
          outcome = worker.exchange(shuffle, produce, total::add, Wait.atMost(0));
        } while (outcome == Outcome.DEADLINE);
        assertEnds(outcome);
      }
    });
    assertEquals(WORKERS * 1000, total.count.get());
    assertEquals(WORKERS, deadlines.get());
  }

  /** An event loop makes a turn under whenReady; a worker that has nothing to send yet is woken. */
  @ParameterizedTest
  @ValueSource(strings = {"tcp", "shm"})
  void anEventLoopMakesOneTurnAtATime(String transport) throws Exception {
    Total total = new Total();
    run(transport, (worker, query) -> {
      Integers integers = new Integers(0, 3000);
      AtomicBoolean maySend = new AtomicBoolean();
      Function<ShuffleSender, Outcome> produce = sender -> maySend.get() ? integers.apply(sender) : Outcome.WOULD_WAIT;
      Outcome[] last = {Outcome.DONE};
      Thread waker = null;
      try (Shuffle shuffle = open(worker, query, 0)) {
        while (last[0] != Outcome.END_OF_STREAM) {
          var ready = worker.whenReady(() -> {
            last[0] = worker.exchange(shuffle, produce, total::add, Wait.NONE);
            return last[0] != Outcome.WOULD_WAIT;
          });
          if (last[0] == Outcome.WOULD_WAIT && waker == null) {
            waker = new Thread(() -> {
              maySend.set(true);
              worker.wake();
            });
            waker.start();
          }
          ready.toCompletableFuture().join();
        }
        waker.join();
      }
    });
    assertEquals(WORKERS * 3000, total.count.get());
  }

  @ParameterizedTest
  @ValueSource(strings = {"tcp", "shm"})
  void whoHasNothingToSendYetIsAskedAgainWhenItIsWoken(String transport) throws Exception {
    run(transport, (worker, query) -> {
      AtomicBoolean maySend = new AtomicBoolean();
      AtomicInteger asked = new AtomicInteger();
      Thread[] waker = {null};
      try (Shuffle shuffle = open(worker, query, 0)) {
        assertEnds(worker.exchange(shuffle, sender -> {
          if (asked.incrementAndGet() == 1) {
            waker[0] = new Thread(() -> {
              maySend.set(true);
              worker.wake();
            });
            waker[0].start();
          }
          return maySend.get() ? Outcome.END_OF_STREAM : Outcome.WOULD_WAIT;
        }, IGNORE));
        waker[0].join();
      }
    });
  }

  @ParameterizedTest
  @ValueSource(strings = {"tcp", "shm"})
  void receiversThatStopEndProducingAlone(String transport) throws Exception {
    AtomicInteger ended = new AtomicInteger();
    run(transport, (worker, query) -> {
      long[] taken = {0};
      try (Shuffle shuffle = open(worker, query, 0)) {
        assertEnds(worker.exchange(shuffle, new Integers(0, Long.MAX_VALUE), batch -> {
          taken[0] += batch.rowCount();
          if (taken[0] >= 100) {
            shuffle.receiver().stop(); // a LIMIT
          }
        }));
      }
      ended.incrementAndGet();
    });
    assertEquals(WORKERS, ended.get());
  }

  @ParameterizedTest
  @ValueSource(strings = {"tcp", "shm"})
  void aBatchThatIsKeptIsHeldAndTheCallGoesOnWhenItIsReleased(String transport) throws Exception {
    Total total = new Total();
    AtomicInteger held = new AtomicInteger();
    run(transport, (worker, query) -> {
      List<Batch> kept = new ArrayList<>();
      Integers integers = new Integers(0, 2000);
      try (Shuffle shuffle = open(worker, query, 0)) {
        Outcome outcome;
        for (; ; kept.clear()) {
          outcome = worker.exchange(shuffle, integers, batch -> {
            batch.keep();
            kept.add(batch);
          });
          if (outcome != Outcome.HOLDING) {
            break;
          }
          assertFalse(kept.isEmpty());
          held.incrementAndGet();
          assertEquals(kept.size(), Set.copyOf(kept).size(), "each is a batch of its own");
          kept.forEach(total::add);
          kept.forEach(Batch::release);
        }
        assertEnds(outcome);
        kept.forEach(total::add);
        kept.forEach(Batch::release);
        failsBy(Code.WRONG_STATE, shuffle.receiver().newBatch()::keep);
      }
    });
    assertEquals(WORKERS * 2000, total.count.get());
    assertEquals(WORKERS * 1999_000L, total.sum.get());
    assertTrue(held.get() > 0);
  }

  @ParameterizedTest
  @ValueSource(strings = {"tcp", "shm"})
  void whileABatchIsKeptNothingIsProduced(String transport) throws Exception {
    run(transport, (worker, query) -> {
      int[] produced = {0};
      boolean[] ends = {false};
      Function<ShuffleSender, Outcome> produce = sender -> {
        if (ends[0]) {
          return Outcome.END_OF_STREAM;
        }
        produced[0]++;
        Outcome outcome = sender.longs().send(0, produced[0], Wait.NONE);
        sender.flush();
        return outcome;
      };
      List<Batch> kept = new ArrayList<>();
      int self = worker.number();
      ShuffleSpec ofItself = new ShuffleSpec(query, self, Long.BYTES).withSenders(self).withReceivers(self);
      try (Shuffle shuffle = worker.openShuffle(ofItself)) {
        Consumer<Batch> keep = batch -> {
          batch.keep();
          kept.add(batch);
        };
        assertEquals(Outcome.HOLDING, worker.exchange(shuffle, produce, keep));
        assertEquals(1, kept.size(), "at once");
        int before = produced[0];
        for (int call = 0; call < 3; call++) {
          assertEquals(Outcome.HOLDING, worker.exchange(shuffle, produce, keep));
        }
        assertEquals(before, produced[0]);
        kept.forEach(Batch::release);
        ends[0] = true;
        assertEnds(worker.exchange(shuffle, produce, batch -> {}));
      }
    });
  }

  @ParameterizedTest
  @ValueSource(strings = {"tcp", "shm"})
  void anInterruptEndsTheCallAndTheSameCallGoesOn(String transport) throws Exception {
    AtomicInteger interrupted = new AtomicInteger();
    run(transport, (worker, query) -> {
      Integers integers = new Integers(0, 1000);
      boolean[] interrupts = {true};
      Function<ShuffleSender, Outcome> produce = sender -> {
        if (interrupts[0]) {
          Thread.currentThread().interrupt();
          return Outcome.DONE; // there is always something to do
        }
        return integers.apply(sender);
      };
      try (Shuffle shuffle = open(worker, query, 0)) {
        assertThrows(InterruptedException.class, () -> worker.exchange(shuffle, produce, IGNORE));
        interrupted.incrementAndGet();
        interrupts[0] = false;
        assertFalse(Thread.currentThread().isInterrupted());
        assertEnds(worker.exchange(shuffle, produce, IGNORE));
      }
    });
    assertEquals(WORKERS, interrupted.get());
  }

  // --- failures

  /** Runs a part that fails on one worker; each worker is then told why by the end of the query. */
  private static void fails(String transport, Code code, String[] words, Function<Integer, Function<ShuffleSender, Outcome>> produce, Function<Integer, Consumer<Batch>> consume, Class<?> thrown, int at) throws Exception {
    try (Cluster cluster = cluster(transport)) {
      QueryId query = cluster.beginQuery();
      CyclicBarrier opened = new CyclicBarrier(WORKERS);
      cluster.onEachWorker(worker -> {
        int w = worker.number();
        Shuffle shuffle = open(worker, query, 0);
        opened.await();
        Throwable why = assertThrows(RuntimeException.class, () -> worker.exchange(shuffle, produce.apply(w), consume.apply(w)));
        assertSame(w == at ? thrown : FaroException.class, why.getClass(), why::toString);
        assertEquals(0, why.getSuppressed().length);
        shuffle.close();
        failsBy(code, () -> worker.endQuery(query), words);
      });
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"tcp", "shm"})
  void whatAFunctionThrowsEndsTheQueryAndIsThrownOn(String transport) throws Exception {
    String[] words = {"worker 2 failed: java.lang.IllegalStateException: no such page"};
    fails(transport, Code.QUERY_FAILED, words, w -> w != 2 ? new Integers(0, 1000) : sender -> {
      throw new IllegalStateException("no such page");
    }, w -> IGNORE, IllegalStateException.class, 2);
    fails(transport, Code.QUERY_FAILED, words, w -> new Integers(0, 1000), w -> w != 2 ? IGNORE : batch -> {
      throw new IllegalStateException("no such page");
    }, IllegalStateException.class, 2);
  }

  @ParameterizedTest
  @ValueSource(strings = {"tcp", "shm"})
  void aSendThatFailsEndsTheQueryWithItsCause(String transport) throws Exception {
    String[] words = {"worker 1 failed", "receiver 99 does not exist"};
    fails(transport, Code.QUERY_FAILED, words, w -> w != 1 ? NOTHING : sender -> sender.send(99, new byte[8], 0, 8, Wait.NONE), w -> IGNORE, FaroException.class, 1);
  }

  @ParameterizedTest
  @ValueSource(strings = {"tcp", "shm"})
  void aProducerThatAnswersWhatItCannotEndsTheQuery(String transport) throws Exception {
    String[] words = {"worker 3 failed: its function `produce` answered DEADLINE"};
    fails(transport, Code.QUERY_FAILED, words, w -> w != 3 ? NOTHING : sender -> Outcome.DEADLINE, w -> IGNORE, FaroException.class, 3);
  }

  @ParameterizedTest
  @ValueSource(strings = {"tcp", "shm"})
  void aCancelledQueryFailsWithTheReason(String transport) throws Exception {
    try (Cluster cluster = cluster(transport)) {
      QueryId query = cluster.beginQuery();
      CyclicBarrier opened = new CyclicBarrier(WORKERS);
      cluster.onEachWorker(worker -> {
        try (Shuffle shuffle = open(worker, query, 0)) {
          opened.await();
          Consumer<Batch> consume = batch -> {
            if (worker.number() == 1) {
              cluster.session(0).cancelQuery(query, "enough");
            }
          };
          failsBy(Code.QUERY_CANCELLED, () -> worker.exchange(shuffle, new Integers(0, Long.MAX_VALUE), consume), "enough");
        }
        failsBy(Code.QUERY_CANCELLED, () -> worker.endQuery(query), "enough");
      });
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"tcp", "shm"})
  void eachWayToEndTellsWhyAFunctionFailed(String transport) throws Exception {
    try (Cluster cluster = new Cluster(transport, 1, 1)) {
      Worker worker = cluster.worker(0);
      List<Function<QueryId, FaroException>> ways = List.of(
          query -> failsBy(Code.QUERY_FAILED, () -> worker.endQuery(query, Wait.NONE)),
          query -> worker.endQuery(query, new Error("later"), Wait.NONE),
          query -> (FaroException) assertThrows(java.util.concurrent.CompletionException.class, () -> worker.endQueryAsync(query).toCompletableFuture().join()).getCause(),
          query -> worker.endQueryAsync(query, new Error("later")).toCompletableFuture().join());
      for (Function<QueryId, FaroException> way : ways) {
        QueryId query = cluster.beginQuery();
        Shuffle shuffle = open(worker, query, 0);
        assertThrows(IllegalStateException.class, () -> worker.exchange(shuffle, sender -> {
          throw new IllegalStateException("no such page");
        }, IGNORE));
        assertSays(way.apply(query), Code.QUERY_FAILED, "worker 0 failed: java.lang.IllegalStateException: no such page");
      }
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"tcp", "shm"})
  void withinItsFunctionsNothingWaitsAndNoOtherExchangeBegins(String transport) throws Exception {
    run(transport, (worker, query) -> {
      try (Shuffle shuffle = open(worker, query, 0);
          Shuffle other = open(worker, query, 1)) {
        Batch batch = other.receiver().newBatch();
        Runnable expectRefused = () -> {
          String nested = "exchange is called by a function of exchange";
          failsBy(Code.WRONG_STATE, () -> worker.exchange(other, NOTHING, IGNORE, Wait.NONE), nested);
          failsBy(Code.WRONG_STATE, () -> worker.exchange(other, NOTHING, IGNORE), nested);
          String waits = "would wait in a function of exchange";
          failsBy(Code.WRONG_STATE, () -> other.receiver().receive(batch), waits);
          failsBy(Code.WRONG_STATE, () -> worker.waitUntil(() -> false), waits);
          failsBy(Code.WRONG_STATE, () -> worker.waitUntil(() -> false, Wait.atMost(Duration.ofDays(1))), waits);
        };
        Integers integers = new Integers(0, 100);
        assertEnds(worker.exchange(shuffle, sender -> {
          expectRefused.run();
          return integers.apply(sender);
        }, any -> expectRefused.run()));
        assertEnds(worker.exchange(other, NOTHING, IGNORE));
      }
    });
  }

  @ParameterizedTest
  @ValueSource(strings = {"tcp", "shm"})
  void whatItIsGivenIsCheckedBeforeAnythingIsDone(String transport) throws Exception {
    Function<ShuffleSender, Outcome> notCalled = sender -> fail("called");
    try (Cluster cluster = cluster(transport)) {
      QueryId query = cluster.beginQuery();
      cluster.onEachWorker(worker -> {
        ExchangePart closed;
        try (Shuffle shuffle = open(worker, query, 0)) {
          failsBy(Code.INVALID_ARGUMENT, () -> worker.exchange(List.of()), "exchange without a shuffle");
          ExchangePart part = ExchangePart.of(shuffle, notCalled, IGNORE);
          failsBy(Code.INVALID_ARGUMENT, () -> worker.exchange(List.of(part, ExchangePart.of(shuffle, notCalled, IGNORE))), "the shuffle of stage 0 twice");
          FutureTask<Outcome> elsewhere = Checks.start(() -> worker.exchange(shuffle, notCalled, IGNORE));
          Throwable refused = assertThrows(java.util.concurrent.ExecutionException.class, elsewhere::get).getCause();
          assertSays((FaroException) refused, Code.WRONG_STATE, "belongs to thread");
          assertEnds(worker.exchange(shuffle, NOTHING, IGNORE));
          closed = part;
        }
        failsBy(Code.CLOSED, () -> worker.exchange(List.of(closed)), "the shuffle of stage 0 was closed");
        worker.endQuery(query);
      });
    }
    try (Cluster cluster = new Cluster(transport, 1, 2);
        Shuffle shuffle = open(cluster.worker(0), cluster.beginQuery(), 5)) {
      failsBy(Code.INVALID_ARGUMENT, () -> cluster.worker(1).exchange(shuffle, notCalled, IGNORE), "exchange of worker 1 of node 0 has a shuffle of worker 0 of node 0, of stage 5");
      assertEquals("parts[0]", assertThrows(NullPointerException.class, () -> cluster.worker(0).exchange(Arrays.asList((ExchangePart) null))).getMessage());
    }
  }

  // --- QueryScope

  @ParameterizedTest
  @ValueSource(strings = {"tcp", "shm"})
  void aScopeEndsThePartOfItsWorker(String transport) throws Exception {
    try (Cluster cluster = cluster(transport)) {
      QueryId query = cluster.beginQuery();
      cluster.onEachWorker(worker -> {
        try (QueryScope part = new QueryScope(worker, query)) {
          try (Shuffle shuffle = open(worker, query, 0)) {
            failsBy(Code.WRONG_STATE, part::end, "its shuffle of stage 0 is open");
            assertEnds(worker.exchange(shuffle, NOTHING, IGNORE));
          }
          part.end();
          part.end();
          assertEquals(Outcome.DONE, part.end(Wait.NONE));
          assertSame(null, part.fail(new Error("too late")));
        }
      });
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"returns", "throws", "fails", "function"})
  void aScopeThatIsLeftEarlyFailsTheQueryAndSaysHow(String way) throws Exception {
    String text = switch (way) {
      case "fails" -> "worker 1 failed: java.lang.Error: disk is full";
      case "function" -> "worker 1 failed: java.lang.IllegalStateException: any";
      default -> "worker 1 failed: it has left the query before its end";
    };
    try (Cluster cluster = cluster("shm")) {
      QueryId query = cluster.beginQuery();
      CyclicBarrier opened = new CyclicBarrier(WORKERS);
      Part part = (worker, id) -> {
        try (QueryScope scope = new QueryScope(worker, id)) {
          try (Shuffle shuffle = open(worker, id, 0)) {
            opened.await();
            if (worker.number() == 1) {
              switch (way) {
                case "throws" -> throw new IllegalStateException("any");
                case "fails" -> assertSays(scope.fail(new Error("disk is full")), Code.QUERY_FAILED, text);
                case "function" -> assertEnds(worker.exchange(shuffle, sender -> {
                  throw new IllegalStateException("any");
                }, IGNORE));
                default -> {
                }
              }
              return;
            }
            failsBy(Code.QUERY_FAILED, () -> worker.exchange(shuffle, NOTHING, IGNORE), text);
          }
          failsBy(Code.QUERY_FAILED, scope::end, text);
          assertSays(scope.fail(new Error("too late")), Code.QUERY_FAILED, text);
        }
      };
      cluster.onEachWorker(worker -> {
        if (worker.number() == 1 && (way.equals("throws") || way.equals("function"))) {
          Throwable thrown = assertThrows(IllegalStateException.class, () -> part.run(worker, query));
          assertEquals(0, thrown.getSuppressed().length);
        } else {
          part.run(worker, query);
        }
      });
    }
  }
}
