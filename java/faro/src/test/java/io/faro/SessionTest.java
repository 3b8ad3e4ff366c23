package io.faro;

import static io.faro.Checks.failsBy;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(30)
class SessionTest {
  @Test
  void knowsTheShapeOfItsCluster() {
    try (Cluster cluster = new Cluster("auto", 2, 3)) {
      Session second = cluster.session(1);
      assertEquals(1, second.node());
      assertEquals(2, second.nodeCount());
      assertEquals(6, second.workerCount());
      assertEquals(3, second.firstWorker());
      assertEquals(List.of(3, 4, 5), second.workers().stream().map(Worker::number).toList());
    }
  }

  @Test
  void aNodeThatTheClusterDoesNotHaveIsRefused() {
    Session session;
    try (Cluster cluster = new Cluster("auto", 1, 1)) {
      session = cluster.session(0);
      assertTrue(session.hasNode(0));
      for (int node : new int[] {-1, 1, 9}) {
        failsBy(Code.INVALID_ARGUMENT, () -> session.hasNode(node));
        failsBy(Code.INVALID_ARGUMENT, () -> session.awaitNode(node, Wait.atMost(Duration.ZERO)));
      }
    }
    failsBy(Code.SESSION_CLOSED, () -> session.hasNode(0));
  }

  @Test
  void queryIdsTravelAsText() {
    QueryId query = new QueryId(7, -2, 3);
    assertEquals("3:7:fffffffffffffffe", query.encoded());
    assertEquals(query, QueryId.parse(query.encoded()));
    for (String wrong : new String[] {"", "3:7", "3:7:x", "3:7:1:", "x:7:1"}) {
      failsBy(Code.INVALID_ARGUMENT, () -> QueryId.parse(wrong));
    }
  }

  @Test
  void namesTheSettingThatIsWrong() {
    SessionConfig config = 
        SessionConfig.builder()
            .cluster(0, Cluster.heldAddresses(1))
            .set(Setting.RING_BYTES, "12345")
            .build();
    FaroException problem = failsBy(Code.CONFIG_INVALID, () -> Session.open(config), "ring.bytes");
    assertEquals(Category.PROCESS, problem.category());
  }

  @Test
  void saysWhoIsMissing() {
    List<String> nodes = Cluster.heldAddresses(2);
    SessionConfig config =
        SessionConfig.builder().cluster(0, nodes).set(Setting.CONNECT_TIMEOUT_MS, 200).build();
    failsBy(Code.CONNECT_FAILED, () -> Session.open(config), nodes.get(1));
  }

  @Test
  void refusesAnAddressInUse() throws Exception {
    try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      List<String> nodes = List.of("127.0.0.1:" + taken.getLocalPort());
      SessionConfig config = SessionConfig.builder().cluster(0, nodes).build();
      failsBy(Code.ADDRESS_IN_USE, () -> Session.open(config));
    }
  }

  /** What {@link Cluster#heldAddresses} promises; sessions of all tests listen at such addresses. */
  @Test
  void theAddressOfATestIsGivenToNobodyElse() throws Exception {
    int port = Integer.parseInt(Cluster.heldAddresses(1).get(0).split(":")[1]);
    try (ServerSocket other = new ServerSocket()) {
      other.setReuseAddress(false);
      assertThrows(BindException.class, () -> other.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), port)));
    }
  }

  @Test
  void closesTwiceAndThrowsAfterwards() {
    Cluster cluster = new Cluster("auto", 1, 1);
    Session session = cluster.session(0);
    Worker worker = cluster.worker(0);
    QueryId query = session.beginQuery();
    cluster.close();
    session.close();
    failsBy(Code.SESSION_CLOSED, session::beginQuery);
    failsBy(Code.SESSION_CLOSED, () -> session.cancelQuery(query, "late"));
    failsBy(Code.SESSION_CLOSED, () -> session.declareQuery(query, 0));
    failsBy(Code.SESSION_CLOSED, () -> worker.openShuffle(new ShuffleSpec(query, 1, 8)));
    failsBy(Code.SESSION_CLOSED, () -> worker.waitUntil(() -> true));
    failsBy(Code.SESSION_CLOSED, () -> worker.endQuery(query));
    worker.wake();
  }

  @Test
  void shufflesOutliveTheirSession() {
    Cluster cluster = new Cluster(1, 1, config -> config.set(Setting.CLOSE_TIMEOUT_MS, 20));
    Shuffle shuffle = cluster.openShuffle(8);
    LongSender sender = shuffle.sender().longs();
    Batch batch = shuffle.receiver().newBatch();
    sender.send(0, 1, Wait.NONE);
    shuffle.sender().flush();
    assertEquals(Outcome.DONE, shuffle.receiver().receive(batch, Wait.NONE));
    failsBy(Code.DEADLINE_EXCEEDED, cluster.session(0)::close);
    cluster.session(0).close();
    assertEquals(1, batch.getLong(0)); // still held, still mapped
    failsBy(Code.SESSION_CLOSED, () -> shuffle.receiver().receive(batch, Wait.NONE));
    shuffle.close();
    failsBy(Code.CLOSED, () -> sender.send(0, 2, Wait.NONE));
  }
}
