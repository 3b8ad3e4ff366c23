package io.faro;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What objects say of themselves, and who owns them. */
@Timeout(60)
class TextsTest {
  @Test
  void objectsSayWhatTheyAre() throws Exception {
    SessionConfig config =
        SessionConfig.builder()
            .workers(4)
            .setBytes(Setting.SECURITY_SECRET_FILE, "hidden".getBytes(java.nio.charset.StandardCharsets.UTF_8))
            .environment()
            .build();
    assertEquals("configuration cluster.workers=4 security.secret_file=(bytes) and the environment", config.toString());
    try (Cluster cluster = new Cluster("shm", 1, 1);
        Shuffle longs = cluster.openShuffle(8);
        EndpointSide side = new EndpointSide("shm")) {
      Session session = cluster.session(0);
      Worker worker = session.workers().get(0);
      assertEquals("session of node 0, of 1 nodes", session.toString());
      assertEquals("worker 0 of node 0", worker.toString());
      assertEquals("poller 0 of endpoint " + side.endpoint.address(), side.poller.toString());
      String stage = "stage " + longs.spec().stage() + " of query " + longs.spec().query();
      assertTrue(longs.toString().startsWith("shuffle of worker 0 of node 0, " + stage), longs.toString());
      assertEquals("sender of " + stage + ", of worker 0 of node 0", longs.sender().toString());
      Stream.of(
              config,
              session,
              worker,
              side.endpoint,
              side.poller,
              longs,
              longs.sender(),
              longs.receiver(),
              longs.sender().longs(),
              longs.sender().objects(RowCodecs.LONG),
              longs.receiver().objects(RowCodecs.LONG),
              longs.receiver().merge(RowCodecs.LONG, Long::compare),
              longs.receiver().newBatch(),
              longs.sender().rows(),
              RowBuffer.over(ByteBuffer.allocateDirect(64)),
              new SchemaCodec(List.of(Column.of(ColumnType.LONG))),
              new ChannelEvents(1))
          .forEach(each -> assertFalse(each.toString().matches(".*io\\.faro\\.\\w+(\\$\\w+)?@.*"), each::toString));
    }
  }

  @Test
  void whoOwnsAWorkerIsToldFromOthersOfItsName() throws Exception {
    try (Cluster cluster = new Cluster("shm", 1, 1)) {
      Worker worker = cluster.session(0).workers().get(0);
      Thread.currentThread().setName("worker 3");
      worker.waitUntil(() -> true);
      long mine = Thread.currentThread().getId();
      String[] why = new String[1];
      long[] others = new long[1];
      Thread other =
          new Thread(
              () -> {
                others[0] = Thread.currentThread().getId();
                why[0] = Checks.failure(() -> worker.waitUntil(() -> true)).getMessage();
              },
              "worker 3");
      other.start();
      other.join();
      String expected =
          "worker 0 belongs to thread \"worker 3\" (id " + mine + "), and this is thread \"worker 3\" (id " + others[0] + ")";
      assertTrue(why[0].contains(expected), why[0]);
    }
  }
}
