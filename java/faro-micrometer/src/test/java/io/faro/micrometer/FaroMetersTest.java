package io.faro.micrometer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.FaroException;
import io.faro.LongSender;
import io.faro.Outcome;
import io.faro.QueryId;
import io.faro.RowCodecs;
import io.faro.Session;
import io.faro.SessionConfig;
import io.faro.Shuffle;
import io.faro.ShuffleSpec;
import io.faro.Worker;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(20)
class FaroMetersTest {
  private static Session open() throws Exception {
    return Session.open(SessionConfig.builder().cluster(0, List.of("127.0.0.1:0")).build());
  }

  private static void sendRows(Session session, int rows) throws InterruptedException {
    Worker worker = session.workers().get(0);
    QueryId query = session.beginQuery();
    try (Shuffle shuffle = worker.openShuffle(new ShuffleSpec(query, 1, 8))) {
      LongSender sender = shuffle.sender().longs();
      for (int i = 0; i < rows; i++) {
        assertEquals(Outcome.DONE, sender.send(0, i));
      }
      assertEquals(Outcome.DONE, shuffle.sender().finish());
      shuffle.receiver().objects(RowCodecs.LONG).forEach(row -> {});
    }
    worker.endQuery(query);
  }

  @Test
  void everyCounterIsAMeter() throws Exception {
    MeterRegistry registry = new SimpleMeterRegistry();
    try (Session session = open()) {
      sendRows(session, 100);
      new FaroMeters(session).bindTo(registry);
      assertEquals(
          100, registry.get("faro.worker.rows.sent").tag("worker", "0").functionCounter().count());
      assertTrue(
          registry.get("faro.link.bytes.sent").tag("transport", "local").functionCounter().count() > 800);
      assertEquals(
          0, registry.get("faro.operator.rows.in").tag("kind", "join").functionCounter().count());
      assertEquals(
          0, registry.get("faro.operator.held.bytes").tag("worker", "0").tag("kind", "join").gauge().value());
      assertEquals(0, registry.get("faro.session.queries.running").tag("node", "0").gauge().value());
      var metrics = session.metrics();
      assertEquals(
          metrics.counters().size()
              + metrics.workers().get(0).counters().size()
              + metrics.links().get(0).counters().size()
              + 2 * metrics.operatorTotals().get(0).counters().size(),
          registry.getMeters().size());
    }
  }

  @Test
  void metersFollowTheirSessionAndKeepTheirLastValues() throws Exception {
    MeterRegistry registry = new SimpleMeterRegistry();
    Session session = open();
    new FaroMeters(session).bindTo(registry);
    sendRows(session, 10);
    var sent = registry.get("faro.worker.rows.sent").functionCounter();
    while (sent.count() < 10) {
      Thread.onSpinWait();
    }
    session.close();
    assertEquals(10, sent.count());
    assertThrows(FaroException.class, () -> new FaroMeters(session));
  }
}
