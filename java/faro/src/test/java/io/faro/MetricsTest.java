package io.faro;

import static java.nio.charset.StandardCharsets.UTF_8;
import static io.faro.Checks.failsBy;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.management.Attribute;
import javax.management.AttributeNotFoundException;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(20)
class MetricsTest {
  private static final int ROWS = 1000;

  /** Both workers of a node and one of another send ROWS longs to each. */
  private static void exchange(Cluster cluster) throws Exception {
    cluster.shuffle(8, (worker, shuffle) -> {
      LongSender sender = shuffle.sender().longs();
      for (int i = 0; i < ROWS * shuffle.sender().receiverCount(); i++) {
        assertEquals(Outcome.DONE, sender.send(i % shuffle.sender().receiverCount(), i));
      }
      assertEquals(Outcome.DONE, shuffle.sender().finish());
      shuffle.receiver().objects(RowCodecs.LONG).forEach(row -> {});
    });
  }

  @Test
  void namesAreThoseOfCpp() {
    Faro.ensureAvailable();
    ShuffleMetrics shuffle =
        new ShuffleMetrics(new QueryId(1, 2, 0), 0, 0, 0, 0, 0, 0, List.of(), List.of());
    List<String> java;
    try (Cluster cluster = new Cluster("auto", 1, 1);
        EndpointSide endpoint = new EndpointSide("auto")) {
      SessionMetrics metrics = cluster.session(0).metrics();
      java =
          Stream.of(
                  names("session", metrics),
                  names("worker", metrics.workers().get(0)),
                  names("link", metrics.links().get(0)),
                  names("lane", metrics.lanes().get(0)),
                  names("operator", metrics.operatorTotals().get(0)),
                  names("shuffle", shuffle),
                  names("sent", new SentMetrics(0, 0, 0, 0, 0, 0, 0)),
                  names("received", new ReceivedMetrics(0, 0, 0, 0, 0, 0)),
                  names("endpoint", endpoint.endpoint.metrics()),
                  names("channel", endpoint.endpoint.metrics().all()))
              .flatMap(names -> names)
              .collect(Collectors.toList());
    }
    assertEquals(new String(NativeMetrics.names(), UTF_8).lines().collect(Collectors.toList()), java);
  }

  private static Stream<String> names(String of, Counters counters) {
    return counters.counters().keySet().stream().map(name -> of + "\t" + name);
  }

  @Test
  void everyValueStandsUnderItsName() throws Exception {
    try (Cluster cluster = new Cluster("tcp", 2, 2)) {
      exchange(cluster);
      SessionMetrics metrics = cluster.session(1).metrics();
      assertEquals(List.of(2, 3), metrics.workers().stream().map(WorkerMetrics::worker).toList());
      for (WorkerMetrics worker : metrics.workers()) {
        assertEquals(4 * ROWS, worker.rowsSent());
        assertEquals(4 * ROWS, worker.rowsReceived());
        assertEquals(0, worker.rowsDropped());
        assertEquals(0, worker.openShuffles());
        assertTrue(worker.operations() > 0, worker.toString());
        assertEquals(0, worker.heldFrames());
        assertEquals(4L * ROWS, worker.counters().get("rows_received"));
      }
      assertEquals(List.of(0, 1), metrics.links().stream().map(LinkMetrics::node).toList());
      assertEquals(
          List.of("tcp", "local"), metrics.links().stream().map(LinkMetrics::transport).toList());
      LinkMetrics link = metrics.links().get(0);
      assertTrue(link.connected());
      assertTrue(link.bytesSent() >= 4L * ROWS * Long.BYTES, link.toString());
      assertTrue(link.bytesReceived() >= 4L * ROWS * Long.BYTES, link.toString());
      assertTrue(link.framesSent() > 0 && link.transfers() > 0 && link.readNotifications() > 0);
      assertEquals(0, link.posts());
      assertEquals(0, link.unreleasedBytes());
      assertEquals(16, metrics.lanes().size());
      assertEquals(
          link.bytesSent(),
          metrics.lanes().stream().filter(l -> l.receiver() < 2).mapToLong(LaneMetrics::bytesSent).sum());
      assertEquals(0, metrics.queriesFailed());
      assertEquals(0, metrics.queriesRunning());
      assertEquals(0, metrics.overflowMemoryBytes());
      assertEquals(0, metrics.untakenFrames());
    }
  }

  @Test
  void aShuffleTellsWhatItHasSentAndReceived() throws Exception {
    try (Cluster cluster = new Cluster("tcp", 2, 1)) {
      List<ShuffleMetrics> open = Collections.synchronizedList(new ArrayList<>());
      List<ShuffleMetrics> closed = Collections.synchronizedList(new ArrayList<>());
      List<ShuffleMetrics> kept = Collections.synchronizedList(new ArrayList<>());
      cluster.shuffle(8, (worker, shuffle) -> {
        LongSender sender = shuffle.sender().longs();
        for (int i = 0; i < ROWS; i++) {
          assertEquals(Outcome.DONE, sender.send(1, i)); // all to one: skew
        }
        assertEquals(Outcome.DONE, shuffle.sender().finish());
        Batch batch = shuffle.receiver().newBatch();
        while (shuffle.receiver().receive(batch) == Outcome.DONE) {}
        open.add(shuffle.metrics());
        shuffle.close();
        closed.add(shuffle.metrics());
        Session session = cluster.session(worker.number());
        kept.addAll(session.shuffleMetrics(shuffle.spec().query()));
      });
      assertEquals(Set.copyOf(open), Set.copyOf(closed));
      assertEquals(Set.copyOf(open), Set.copyOf(kept));
      assertEquals(2, kept.size());
      for (ShuffleMetrics metrics : kept) {
        assertEquals(List.of(0L, (long) ROWS), metrics.sent().stream().map(SentMetrics::rows).toList());
        SentMetrics sent = metrics.sent().get(1);
        assertEquals(1, sent.receiver());
        assertEquals(8L * ROWS, sent.bytes());
        assertTrue(sent.frames() > 0);
        assertEquals(0, sent.rowsOutOverflow());
        assertEquals(List.of(0, 1), metrics.received().stream().map(ReceivedMetrics::sender).toList());
        for (ReceivedMetrics received : metrics.received()) {
          assertEquals(metrics.worker() == 1 ? ROWS : 0, received.rows());
          assertEquals(8 * received.rows(), received.bytes());
          assertEquals(received.rows() > 0, received.batches() > 0);
        }
        assertTrue(metrics.blockedOnRowsNs() == 0 || metrics.blockedOnRows() > 0, metrics.toString());
        assertEquals(metrics.blockedOnRows(), metrics.counters().get("blocked_on_rows"));
      }
      assertEquals(List.of(), cluster.session(0).shuffleMetrics(new QueryId(99, 1, 0)));
    }
  }

  @Test
  void aCallThatWaitsCountsWithItsTime() throws Exception {
    try (Cluster cluster = new Cluster("tcp", 1, 1);
        Shuffle shuffle = cluster.openShuffle(8)) {
      Batch batch = shuffle.receiver().newBatch();
      assertEquals(Outcome.WOULD_WAIT, shuffle.receiver().receive(batch, Wait.NONE));
      assertEquals(1, shuffle.metrics().blockedOnRows());
      assertEquals(0, shuffle.metrics().blockedOnRowsNs());
      assertEquals(Outcome.DEADLINE, shuffle.receiver().receive(batch, Wait.atMost(2_000_000)));
      assertEquals(3, shuffle.metrics().blockedOnRows()); // it tries once before it waits
      assertTrue(shuffle.metrics().blockedOnRowsNs() >= 2_000_000, () -> shuffle.metrics().toString());
      assertEquals(0, shuffle.metrics().blockedOnRoom());
      assertEquals(Outcome.DONE, shuffle.sender().finish());
      assertEquals(Outcome.END_OF_STREAM, shuffle.receiver().receive(batch));
    }
  }

  @Test
  void whatClosingAShuffleDidIsCounted() {
    try (Cluster cluster = new Cluster("auto", 1, 1)) {
      Shuffle shuffle = cluster.openShuffle(8);
      assertEquals(Outcome.DONE, shuffle.sender().longs().send(0, 1, Wait.NONE));
      shuffle.close(); // before its end, with a frame open
      List<ShuffleMetrics> kept = cluster.session(0).shuffleMetrics(shuffle.spec().query());
      assertEquals(List.of(shuffle.metrics()), kept);
    }
  }

  @Test
  void afterCloseThereAreNone() {
    Cluster cluster = new Cluster("auto", 1, 1);
    cluster.close();
    Session session = cluster.session(0);
    failsBy(Code.SESSION_CLOSED, session::metrics);
    failsBy(Code.SESSION_CLOSED, session::registerBeans);
    failsBy(Code.SESSION_CLOSED, () -> session.shuffleMetrics(new QueryId(1, 1, 0)));
  }

  private static Set<ObjectName> beans() throws Exception {
    return ManagementFactory.getPlatformMBeanServer().queryNames(new ObjectName("io.faro:*"), null);
  }

  @Test
  void beansStandInThePlatformServerUntilClose() throws Exception {
    MBeanServer server = ManagementFactory.getPlatformMBeanServer();
    assertEquals(Set.of(), beans());
    try (Cluster cluster = new Cluster("auto", 2, 2)) {
      cluster.session(0).registerBeans();
      cluster.session(0).registerBeans();
      cluster.session(1).registerBeans();
      assertEquals(2 * (1 + 2 + 2), beans().size());
      exchange(cluster);
      ObjectName worker =
          server.queryNames(new ObjectName("io.faro:type=Worker,worker=3,*"), null).iterator().next();
      assertEquals(4L * ROWS, server.getAttribute(worker, "rows_sent"));
      assertEquals(
          List.of(new Attribute("rows_received", 4L * ROWS)),
          server.getAttributes(worker, new String[] {"rows_received", "unknown"}).asList());
      assertThrows(AttributeNotFoundException.class, () -> server.getAttribute(worker, "unknown"));
      assertEquals(
          List.copyOf(cluster.session(0).metrics().workers().get(0).counters().keySet()),
          Arrays.stream(server.getMBeanInfo(worker).getAttributes()).map(a -> a.getName()).toList());
      cluster.session(1).close();
      assertEquals(1 + 2 + 2, beans().size());
    }
    assertEquals(Set.of(), beans());
  }
}
