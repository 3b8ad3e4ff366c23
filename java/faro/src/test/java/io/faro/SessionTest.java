package io.faro;

import static io.faro.Checks.codeOf;
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
        assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> session.hasNode(node)));
        assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> session.awaitNode(node, Wait.atMost(Duration.ZERO))));
      }
    }
    assertEquals(Code.SESSION_CLOSED, codeOf(() -> session.hasNode(0)));
  }

  @Test
  void queryIdsTravelAsText() {
    QueryId query = new QueryId(7, -2, 3);
    assertEquals("3:7:fffffffffffffffe", query.encoded());
    assertEquals(query, QueryId.parse(query.encoded()));
    for (String wrong : new String[] {"", "3:7", "3:7:x", "3:7:1:", "x:7:1"}) {
      assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> QueryId.parse(wrong)));
    }
  }

  @Test
  void namesTheSettingThatIsWrong() {
    SessionConfig config = 
        SessionConfig.builder()
            .cluster(0, Cluster.heldAddresses(1))
            .set(Setting.RING_BYTES, "12345")
            .build();
    FaroException problem = assertThrows(FaroException.class, () -> Session.open(config));
    assertEquals(Code.CONFIG_INVALID, problem.code());
    assertEquals(Category.PROCESS, problem.category());
    assertTrue(problem.getMessage().contains("ring.bytes"), problem.getMessage());
  }

  @Test
  void saysWhoIsMissing() {
    List<String> nodes = Cluster.heldAddresses(2);
    SessionConfig config =
        SessionConfig.builder().cluster(0, nodes).set(Setting.CONNECT_TIMEOUT_MS, 200).build();
    FaroException problem = assertThrows(FaroException.class, () -> Session.open(config));
    assertEquals(Code.CONNECT_FAILED, problem.code());
    assertTrue(problem.getMessage().contains(nodes.get(1)), problem.getMessage());
  }

  @Test
  void refusesAnAddressInUse() throws Exception {
    try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      List<String> nodes = List.of("127.0.0.1:" + taken.getLocalPort());
      SessionConfig config = SessionConfig.builder().cluster(0, nodes).build();
      assertEquals(Code.ADDRESS_IN_USE, codeOf(() -> Session.open(config)));
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
    assertEquals(Code.SESSION_CLOSED, codeOf(session::beginQuery));
    assertEquals(Code.SESSION_CLOSED, codeOf(() -> session.cancelQuery(query, "late")));
    assertEquals(Code.SESSION_CLOSED, codeOf(() -> session.declareQuery(query, 0)));
    assertEquals(Code.SESSION_CLOSED, codeOf(() -> worker.openShuffle(new ShuffleSpec(query, 1, 8))));
    assertEquals(Code.SESSION_CLOSED, codeOf(() -> worker.waitUntil(() -> true)));
    assertEquals(Code.SESSION_CLOSED, codeOf(() -> worker.endQuery(query)));
    worker.wake();
  }

  @Test
  void shufflesOutliveTheirSession() {
    Cluster cluster = new Cluster(1, 1, config -> config.set(Setting.CLOSE_TIMEOUT_MS, 20));
    Shuffle shuffle =
        cluster.worker(0).openShuffle(new ShuffleSpec(cluster.session(0).beginQuery(), 1, 8));
    LongSender sender = shuffle.sender().longs();
    Batch batch = shuffle.receiver().newBatch();
    sender.send(0, 1, Wait.NONE);
    shuffle.sender().flush();
    assertEquals(Outcome.DONE, shuffle.receiver().receive(batch, Wait.NONE));
    assertEquals(Code.DEADLINE_EXCEEDED, codeOf(cluster.session(0)::close));
    cluster.session(0).close();
    assertEquals(1, batch.getLong(0)); // still held, still mapped
    assertEquals(Code.SESSION_CLOSED, codeOf(() -> shuffle.receiver().receive(batch, Wait.NONE)));
    shuffle.close();
    assertEquals(Code.CLOSED, codeOf(() -> sender.send(0, 2, Wait.NONE)));
  }
}
