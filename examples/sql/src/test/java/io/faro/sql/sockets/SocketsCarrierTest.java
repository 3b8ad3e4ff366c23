package io.faro.sql.sockets;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.Column;
import io.faro.ColumnType;
import io.faro.ObjectShuffleSpec;
import io.faro.Outcome;
import io.faro.QueryId;
import io.faro.RowCodec;
import io.faro.SchemaCodec;
import io.faro.Session;
import io.faro.SessionConfig;
import io.faro.ShuffleSpec;
import io.faro.Worker;
import io.faro.sockets.HeldAddresses;
import io.faro.sockets.Peer;
import io.faro.sockets.SocketsQuery;
import io.faro.sql.cluster.Addresses;
import io.faro.sql.exec.Carrier;
import io.faro.sql.exec.RowShuffle;
import io.faro.sql.exec.Shuffles;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Workers of one or two sessions in this JVM, without an engine. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD) // a wait without end ends the test, too
class SocketsCarrierTest {
  private static final int LIMIT_S = 20; // for a query

  private static final RowCodec<Object[]> ROWS =
      new SchemaCodec(List.of(Column.of(ColumnType.INT), Column.of(ColumnType.STRING)));

  private final HeldAddresses held = Addresses.hold(8, List.of("127.0.0.1"));
  private int used;
  private List<Session> sessions = List.of();
  private List<Carrier> carriers = List.of();

  @AfterEach
  void close() {
    carriers.forEach(Carrier::close);
    sessions.forEach(Session::close);
    held.close();
  }

  private List<String> addresses(int count) {
    used += count;
    return held.all().subList(used - count, used);
  }

  private void openSessions(int nodes, int workers) {
    List<String> addresses = addresses(nodes);
    List<CompletableFuture<Session>> opening = new ArrayList<>();
    for (int node = 0; node < nodes; node++) {
      SessionConfig config = SessionConfig.builder().cluster(node, addresses).workers(workers).build();
      opening.add(Session.openAsync(config).toCompletableFuture());
    }
    sessions = opening.stream().map(CompletableFuture::join).toList();
  }

  private void openCarriers(CarrierSettings settings) {
    List<CompletableFuture<Carrier>> opening = new ArrayList<>();
    for (Session session : sessions) {
      opening.add(CompletableFuture.supplyAsync(() -> SocketsCarrier.open(session, settings)));
    }
    carriers = opening.stream().map(CompletableFuture::join).toList();
  }

  private static List<ObjectShuffleSpec<Object[]>> stage(QueryId query) {
    return List.of(ShuffleSpec.repartition(query, 0).withRowsOf(ROWS));
  }

  private interface Part {
    void run(int worker, RowShuffle shuffle) throws Exception;
  }

  /** Runs a query of one stage. */
  private void query(Part part) throws Exception {
    QueryId query = sessions.get(0).beginQuery();
    List<FutureTask<Void>> running = new ArrayList<>();
    for (Session session : sessions) {
      for (Worker worker : session.workers()) {
        FutureTask<Void> task =
            new FutureTask<>(
                () -> {
                  try (Shuffles shuffles = carriers.get(session.node()).open(worker, query, stage(query))) {
                    part.run(worker.number(), shuffles.stage(0));
                    shuffles.complete();
                  }
                  worker.endQuery(query);
                  worker.releaseOwnership();
                  return null;
                });
        running.add(task);
        new Thread(task).start();
      }
    }
    for (FutureTask<Void> worker : running) {
      worker.get(LIMIT_S, TimeUnit.SECONDS);
    }
  }

  /** Nobody looks of itself within the time limit of a test: whoever sleeps has to be woken. */
  private CarrierSettings withoutLooking(int nodes) {
    return new CarrierSettings(addresses(nodes), 1 << 20, Duration.ofSeconds(10), Duration.ofSeconds(1), 600_000);
  }

  @Test
  void aWorkerThatWaitsIsWokenByRowsAndEndsOfItsSiblings() throws Exception {
    openSessions(1, 2);
    openCarriers(withoutLooking(1));
    for (int round = 0; round < 300; round++) {
      int late = round % 2;
      query(
          (worker, shuffle) -> {
            if (worker == late) {
              Thread.sleep(0, 500_000); // the other one is about to sleep, or does
              shuffle.send(1 - worker, new Object[] {worker, "row"});
            }
            shuffle.finish();
            if (worker != late) {
              assertEquals(Outcome.DONE, shuffle.next());
              assertArrayEquals(new Object[] {late, "row"}, shuffle.get());
            }
            assertEquals(Outcome.END_OF_STREAM, shuffle.next());
          });
    }
  }

  /** Within a process and between two. */
  @Test
  void aSenderWaitsUntilItsReceiverTakesRowsAndIsThenWoken() throws Exception {
    openSessions(2, 2);
    openCarriers(withoutLooking(2));
    for (int receiver : new int[] {1, 2}) {
      int to = receiver;
      AtomicBoolean isSent = new AtomicBoolean();
      String text = "x".repeat(10_000);
      int rows = 20_000; // far more than lanes and sockets hold
      query(
          (worker, shuffle) -> {
            if (worker == 0) {
              for (int i = 0; i < rows; i++) {
                shuffle.send(to, new Object[] {i, text});
              }
              isSent.set(true);
            }
            if (worker == to) {
              Thread.sleep(300);
              assertTrue(!isSent.get(), "rows are kept without a limit");
            }
            shuffle.finish();
            int next = 0;
            while (shuffle.next() == Outcome.DONE) {
              assertEquals(next++, shuffle.get()[0]);
            }
            assertEquals(worker == to ? rows : 0, next);
          });
    }
  }

  /** A peer that does what is wanted when the worker is about to sleep. */
  private record BeforeSleep(Runnable action) implements Peer {
    @Override
    public boolean tryPut(int stage, long row) {
      return true;
    }

    @Override
    public <T> boolean tryPut(int stage, RowCodec<T> codec, T row) {
      return true;
    }

    @Override
    public <T> boolean tryPut(int stage, RowCodec<T> codec, T row, ByteBuffer written, int bytes) {
      return true;
    }

    @Override
    public boolean tryPutEnd(int stage) {
      return true;
    }

    @Override
    public boolean flush() {
      return true;
    }

    @Override
    public void wakeWhenRoom() {
      action.run();
    }

    @Override
    public void begin(SocketsQuery query) {}

    @Override
    public void end() {}

    @Override
    public void close() {}
  }

  /** What is sent waits for room while its sender waits for the answer; the room comes after it was looked for. */
  @Test
  void aWorkerThatWaitsForRowsIsWokenByRoomForItsOwn() throws Exception {
    int rows = 16 * 256 + 1; // one more than a lane holds
    openSessions(1, 3);
    openCarriers(withoutLooking(1));
    Session session = sessions.get(0);
    SocketsCarrier carrier = (SocketsCarrier) carriers.get(0);
    QueryId query = session.beginQuery();
    try (Shuffles waits = carrier.open(session.workers().get(0), query, stage(query));
        Shuffles answers = carrier.open(session.workers().get(1), query, stage(query))) {
      RowShuffle sibling = answers.stage(0);
      AtomicInteger taken = new AtomicInteger();
      Runnable takeAll =
          () -> {
            while (sibling.tryNext() == Outcome.DONE) {
              assertEquals(taken.getAndIncrement(), sibling.get()[0]);
            }
            if (taken.get() == rows) {
              carrier.worker(1).peer(0).tryPut(0, ROWS, new Object[] {rows, "answer"});
              carrier.worker(1).flush();
            }
          };
      carrier.worker(0).connect(2, new BeforeSleep(takeAll));
      for (int i = 0; i < rows; i++) {
        waits.stage(0).send(1, new Object[] {i, "row"});
      }
      assertEquals(Outcome.DONE, waits.stage(0).next());
      assertArrayEquals(new Object[] {rows, "answer"}, waits.stage(0).get());
    }
  }

  /** One worker has failed a query and begun the next one while the other is still in the first. */
  @ParameterizedTest(name = "read before: {0}, {1} nodes")
  @CsvSource({"false, 2", "true, 2", "false, 1", "true, 1"})
  void rowsOfAnEarlierQueryAreDroppedAndThoseOfALaterOneWait(boolean readsBefore, int nodes) throws Exception {
    openSessions(nodes, 2 / nodes);
    openCarriers(new CarrierSettings(addresses(nodes), 1 << 20, Duration.ofSeconds(10)));
    Worker sender = sessions.get(0).workers().get(0);
    Worker receiver = sessions.get(nodes - 1).workers().get(nodes == 1 ? 1 : 0);
    QueryId failed = sessions.get(0).beginQuery();
    Shuffles late = carriers.get(nodes - 1).open(receiver, failed, stage(failed));
    sendOne(carriers.get(0).open(sender, failed, stage(failed)), "earlier").close();
    QueryId next = sessions.get(0).beginQuery();
    Shuffles ahead = sendOne(carriers.get(0).open(sender, next, stage(next)), "later");
    if (readsBefore) {
      while (late.stage(0).tryNext() == Outcome.WOULD_WAIT) {
        Thread.onSpinWait();
      }
      assertEquals("earlier", late.stage(0).get()[1]);
      for (int i = 0; i < 20; i++) {
        assertEquals(Outcome.WOULD_WAIT, late.stage(0).tryNext()); // what lies there is not of this query
        Thread.sleep(1);
      }
    }
    late.close();
    try (Shuffles shuffles = carriers.get(nodes - 1).open(receiver, next, stage(next))) {
      assertEquals(Outcome.DONE, shuffles.stage(0).next());
      assertEquals("later", shuffles.stage(0).get()[1]);
    }
    ahead.close();
  }

  private static Shuffles sendOne(Shuffles shuffles, String text) throws Exception {
    shuffles.stage(0).send(1, new Object[] {1, text});
    shuffles.stage(0).finish();
    return shuffles;
  }

  @ParameterizedTest(name = "somebody tells why: {0}")
  @ValueSource(booleans = {true, false})
  void aConnectionThatEndsWaitsForTheCauseOfThat(boolean isTold) throws Exception {
    openSessions(2, 1);
    Duration causeLimit = isTold ? Duration.ofSeconds(20) : Duration.ofMillis(100);
    openCarriers(new CarrierSettings(addresses(2), 1 << 20, Duration.ofSeconds(10), causeLimit, 20));
    ((SocketsCarrier) carriers.get(0)).worker(0).peer(1).close();
    QueryId query = sessions.get(0).beginQuery();
    List<CompletableFuture<RuntimeException>> failures = new ArrayList<>();
    for (int node = 0; node < 2; node++) {
      Worker worker = sessions.get(node).workers().get(0);
      Carrier carrier = carriers.get(node);
      failures.add(
          CompletableFuture.supplyAsync(
              () -> {
                try (Shuffles shuffles = carrier.open(worker, query, stage(query))) {
                  return assertThrows(
                      RuntimeException.class,
                      () -> {
                        shuffles.stage(0).finish();
                        shuffles.stage(0).next();
                      });
                }
              },
              run -> new Thread(run).start()));
    }
    if (isTold) {
      Thread.sleep(200); // longer than it takes to hear of the end
      sessions.get(0).cancelQuery(query, "the cause");
    }
    boolean isEndItself = false;
    for (CompletableFuture<RuntimeException> failure : failures) {
      RuntimeException thrown = failure.get(LIMIT_S, TimeUnit.SECONDS);
      assertTrue(!isTold || thrown.getMessage().contains("the cause"), thrown.toString());
      isEndItself |= thrown instanceof CarrierEndedException;
    }
    assertEquals(!isTold, isEndItself); // of the two nodes the second may have heard of the first
  }

  @Test
  void connectingEndsAtItsTimeLimitAndLeavesNothingOpen() throws Exception {
    openSessions(2, 1);
    List<String> addresses = addresses(2);
    CarrierSettings settings = new CarrierSettings(addresses, 1 << 20, Duration.ofMillis(300));
    for (int node = 0; node < 2; node++) {
      Session session = sessions.get(node);
      int before = descriptors();
      UncheckedIOException late =
          assertThrows(UncheckedIOException.class, () -> SocketsCarrier.open(session, settings));
      String expected = node == 0 ? "1 connections of other nodes are missing" : "dialling";
      assertTrue(late.getMessage().contains("connecting took too long: " + expected), late.getMessage());
      assertTrue(descriptors() <= before, "sockets are left open"); // those of other tests may go
    }
  }

  @Test
  void whoWasRefusedIsToldWithWhatIsMissing() throws Exception {
    openSessions(2, 1);
    List<String> addresses = addresses(2);
    CarrierSettings settings = new CarrierSettings(addresses, 1 << 20, Duration.ofMillis(1000));
    CompletableFuture<Carrier> opening =
        CompletableFuture.supplyAsync(() -> SocketsCarrier.open(sessions.get(0), settings), run -> new Thread(run).start());
    try (Socket outsider = dial(Integer.parseInt(addresses.get(0).split(":")[1]))) {
      String late = assertThrows(CompletionException.class, opening::join).getMessage();
      String who = outsider.getLocalSocketAddress().toString();
      assertTrue(late.endsWith("1 connections of other nodes are missing; " + who + " was refused, it said nothing in time"), late);
    }
  }

  @Test
  void whoeverConnectsWithoutBeingAWorkerTakesNoPlace() throws Exception {
    openSessions(2, 1);
    List<String> addresses = addresses(2);
    CarrierSettings settings = new CarrierSettings(addresses, 1 << 20, Duration.ofSeconds(20));
    CompletableFuture<Carrier> opening =
        CompletableFuture.supplyAsync(() -> SocketsCarrier.open(sessions.get(0), settings));
    int port = Integer.parseInt(addresses.get(0).split(":")[1]);
    for (byte[] hello : List.of(new byte[12], new byte[] {0x66, 0x61, 0x72, 0x6f, 0, 0, 0, 9, 0, 0, 0, 0}, new byte[3])) {
      try (Socket outsider = dial(port)) {
        outsider.getOutputStream().write(hello);
        if (hello.length == 12) {
          assertEquals(-1, outsider.getInputStream().read());
        }
      }
    }
    Carrier other = SocketsCarrier.open(sessions.get(1), settings);
    carriers = List.of(opening.join(), other);
    query(
        (worker, shuffle) -> {
          for (int to = 0; to < shuffle.receiverCount(); to++) {
            shuffle.send(to, new Object[] {worker, "hello"});
          }
          shuffle.finish();
          int sum = 0;
          while (shuffle.next() == Outcome.DONE) {
            sum += 10 + (Integer) shuffle.get()[0];
          }
          assertEquals(21, sum);
        });
  }

  private static Socket dial(int port) throws Exception {
    while (true) {
      Socket socket = new Socket();
      try {
        socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 1000);
        socket.setSoTimeout(20_000);
        return socket;
      } catch (IOException notYet) {
        socket.close();
        Thread.sleep(5);
      }
    }
  }

  private static int descriptors() {
    return new File("/proc/self/fd").list().length;
  }
}
