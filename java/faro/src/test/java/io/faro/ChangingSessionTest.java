package io.faro;

import static io.faro.Checks.assertSays;
import static io.faro.Checks.check;
import static io.faro.Checks.drainLongs;
import static io.faro.Checks.failsBy;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A node that is added to a session, drained and removed, and another one that gets its number. */
@Timeout(60)
class ChangingSessionTest {
  private static final class Recorder implements SessionListener {
    final BlockingQueue<String> events = new LinkedBlockingQueue<>();

    @Override
    public void nodeAdded(int node) {
      events.add("added " + node);
    }

    @Override
    public void nodeDrained(int node) {
      events.add("drained " + node);
    }

    @Override
    public void nodeRemoved(int node) {
      events.add("removed " + node);
    }
  }

  private static Session open(int node, String nodes, String id) throws InterruptedException {
    return Session.open(
        SessionConfig.builder()
            .cluster(node, List.of(nodes.split(",")))
            .set(Setting.CLUSTER_ID, id)
            .set(Setting.CLUSTER_NODE_LIMIT, 4)
            .build());
  }

  /** Node 1 of at most 4, with workers 2 and 3 of at most 8; node 0 has not come. */
  private static Session openAlone() throws InterruptedException {
    return Session.open(
        Cluster.config(1, Cluster.heldAddresses(2))
            .workers(2)
            .set(Setting.CLUSTER_NODE_LIMIT, 4)
            .set(Setting.CONNECT_WAIT_FOR, "none")
            .build());
  }

  private interface Exchange {
    void run(Shuffle from2, Shuffle from3) throws Exception;
  }

  /** Runs what workers 2 and 3 do in a shuffle that names no workers; they are those that are declared. */
  private static void exchangeOfTwo(int rowBytes, Exchange exchange) throws Exception {
    try (Session session = openAlone()) {
      assertEquals(8, session.workerCount());
      Worker worker2 = session.workers().get(0);
      Worker worker3 = session.workers().get(1);
      QueryId query = session.beginQuery();
      session.declareQuery(query, 2, 3);
      ShuffleSpec spec = new ShuffleSpec(query, 0, rowBytes);
      try (Shuffle from2 = worker2.openShuffle(spec);
          Shuffle from3 = worker3.openShuffle(spec)) {
        assertEquals(spec.withSenders(2, 3).withReceivers(2, 3), from2.spec());
        assertEquals(2, from2.sender().receiverCount());
        exchange.run(from2, from3);
      }
      assertEquals(Outcome.WOULD_WAIT, worker2.endQuery(query, Wait.NONE));
      worker3.endQuery(query);
      worker2.endQuery(query);
    }
  }

  private static void finish(Shuffle... shuffles) {
    for (Shuffle shuffle : shuffles) {
      check(shuffle.sender().finish(Wait.NONE));
    }
  }

  /** Sends a row to each worker of a query and returns the sum of what comes. */
  private static long exchange(Worker worker, QueryId query, int workers) throws InterruptedException {
    long[] sum = {0};
    try (Shuffle shuffle = worker.openShuffle(new ShuffleSpec(query, 0, 8))) {
      LongSender sender = shuffle.sender().longs();
      for (int receiver = 0; receiver < workers; receiver++) {
        sender.send(receiver, 1 + worker.number());
      }
      shuffle.sender().finish();
      drainLongs(shuffle, row -> sum[0] += row);
    }
    worker.endQuery(query);
    worker.releaseOwnership();
    return sum[0];
  }

  @Test
  void aShuffleThatNamesNoWorkersIsOfThoseThatAreDeclared() throws Exception {
    exchangeOfTwo(Long.BYTES, (from2, from3) -> {
      LongSender longs = from2.sender().longs();
      RowWriter rows = from2.sender().rows();
      check(longs.send(1, 23, Wait.NONE));
      assertTrue(longs.put(1, 24)); // beside it, in the same frame
      String refused = "receiver 2 does not exist (0 … 1)";
      failsBy(Code.INVALID_ARGUMENT, () -> longs.send(2, 25, Wait.NONE), refused);
      failsBy(Code.INVALID_ARGUMENT, () -> longs.put(2, 25), refused);
      failsBy(Code.INVALID_ARGUMENT, () -> rows.claim(2, Long.BYTES, Wait.NONE), refused);
      check(from3.sender().longs().send(0, 32, Wait.NONE));
      finish(from2, from3);
      List<Long> at2 = new ArrayList<>();
      List<Long> at3 = new ArrayList<>();
      drainLongs(from2, at2::add);
      drainLongs(from3, at3::add);
      assertEquals(List.of(32L), at2);
      assertEquals(List.of(23L, 24L), at3);
    });
  }

  @Test
  void itsReceiversMergeWhatTheDeclaredWorkersSend() throws Exception {
    exchangeOfTwo(Long.BYTES, (from2, from3) -> {
      check(from2.sender().objects(RowCodecs.LONG).send(1, 2L, Wait.NONE));
      check(from3.sender().objects(RowCodecs.LONG).send(1, 1L, Wait.NONE));
      finish(from2, from3);
      from2.receiver().stop();
      List<Long> merged = new ArrayList<>();
      from3.receiver().merge(RowCodecs.LONG, Comparator.naturalOrder()).forEach(merged::add);
      assertEquals(List.of(1L, 2L), merged);
    });
  }

  @Test
  void itsSendersAndReceiversAreThoseDeclared() throws Exception {
    exchangeOfTwo(0, (from2, from3) -> {
      ObjectSender<String> sender = from2.sender().objects(RowCodecs.STRING);
      check(sender.send(1, "from 2 to 3", Wait.NONE));
      failsBy(Code.INVALID_ARGUMENT, () -> sender.send(2, "", Wait.NONE), "receiver 2 does not exist");
      finish(from2, from3);
      from2.receiver().stop();
      ObjectReceiver<String> receiver = from3.receiver().objects(RowCodecs.STRING);
      check(receiver.next());
      assertEquals("from 2 to 3", receiver.get());
      assertEquals(0, receiver.sender()); // the first one declared
      assertEquals(Outcome.END_OF_STREAM, receiver.next());
    });
  }

  @Test
  void linksAreCountedUnderTheirNodesWhereNumbersAreFree() throws Exception {
    String address = Cluster.heldAddresses(1).get(0);
    try (Session session = open(2, "-,-," + address, address)) {
      List<LinkMetrics> links = session.metrics().links();
      assertEquals(List.of(2), links.stream().map(LinkMetrics::node).toList());
      assertEquals("local", links.get(0).transport());
      session.registerBeans();
      MBeanServer server = ManagementFactory.getPlatformMBeanServer();
      ObjectName link =
          server.queryNames(new ObjectName("io.faro:type=Link,node=2,*"), null).iterator().next();
      assertEquals(0L, server.getAttribute(link, "bytes_sent"));
    }
  }

  @Test
  void aNodeIsAddedDrainedAndRemovedAndItsNumberIsUsedAgain() throws Exception {
    List<String> addresses = Cluster.heldAddresses(3);
    String id = addresses.get(0);
    Recorder recorder = new Recorder();
    try (Session session = open(0, addresses.get(0), id)) {
      session.listen(recorder);
      assertEquals(4, session.nodeCount());
      for (String address : addresses.subList(1, 3)) {
        session.addNode(1, address);
        assertSays(
            assertThrows(FaroException.class, () -> session.addNode(1, address)),
            Code.WRONG_STATE,
            "remove it first");
        try (Session added = open(1, addresses.get(0) + "," + address, id)) {
          assertEquals("added 1", recorder.events.take());
          QueryId query = session.beginQuery();
          session.declareQuery(query, 0, 1);
          added.declareQuery(query, 0, 1);
          long[] theirs = {0};
          Thread other =
              new Thread(
                  () -> {
                    try {
                      theirs[0] = exchange(added.workers().get(0), query, 2);
                    } catch (InterruptedException interrupted) {
                      throw new AssertionError(interrupted);
                    }
                  });
          other.start();
          assertEquals(3, exchange(session.workers().get(0), query, 2));
          other.join();
          assertEquals(3, theirs[0]);
          session.drainNode(1);
          added.drainNode(1);
          assertEquals("drained 1", recorder.events.take());
          assertFalse(session.hasNode(1));
        }
        session.removeNode(1);
        assertEquals("removed 1", recorder.events.take());
      }
      failsBy(Code.INVALID_ARGUMENT, () -> session.removeNode(1));
      failsBy(Code.INVALID_ARGUMENT, () -> session.drainNode(4));
      assertTrue(session.hasNode(0));
    }
  }
}
