package io.faro;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;

/** A null where a value is wanted is told by the name of the argument, as the method declares it. */
@Timeout(60)
class NullArgumentsTest {
  private static final QueryId QUERY = new QueryId(1, 2, 0);
  private static final Wait<?> NOW = Wait.NONE;

  private static void all(Map<String, List<Executable>> calls) {
    calls.forEach(
        (argument, each) -> {
          for (int i = 0; i < each.size(); i++) {
            String which = argument + ", call " + i;
            String why = assertThrows(NullPointerException.class, each.get(i), which).getMessage();
            assertEquals(argument, why, which);
          }
        });
  }

  @Test
  void ofSpecsCodecsAndConfigurations() {
    SessionConfig.Builder builder = SessionConfig.builder();
    all(
        Map.of(
            "nodes", List.of(() -> builder.cluster(0, null)),
            "setting", List.of(() -> builder.set(null, "1"), () -> builder.set(null, 1), () -> builder.setBytes(null, new byte[1]), () -> builder.build().get(null)),
            "cluster.id", List.of(() -> builder.set(Setting.CLUSTER_ID, null)),
            "security.key", List.of(() -> builder.setBytes(Setting.SECURITY_KEY, null)),
            "config", List.of(() -> Session.open(null), () -> Session.openAsync(null), () -> Endpoint.open(null), () -> Endpoint.channelMemory(null, List.of())),
            "name", List.of(() -> new EndpointSpec().withName(null)),
            "acceptor", List.of(() -> new EndpointSpec().withAcceptor(null)),
            "answerToOthers", List.of(() -> new EndpointSpec().withAnswerToOthers(null))));
    all(
        Map.of(
            "spec", List.of(() -> Endpoint.open(builder.build(), null), () -> new ObjectShuffleSpec<>(null, RowCodecs.LONG)),
            "channels", List.of(() -> Endpoint.channelMemory(builder.build(), null)),
            "greeting", List.of(() -> new ChannelSpec().withGreeting((byte[]) null)),
            "reason", List.of(() -> ChannelAcceptance.refused(null)),
            "type", List.of(() -> Column.of(null), () -> Column.nullable(null), () -> new Column(null, true, 0)),
            "schema", List.of(() -> new SchemaCodec(null)),
            "encoded", List.of(() -> QueryId.parse(null)),
            "query", List.of(() -> ShuffleSpec.repartition(null, 0), () -> ShuffleSpec.gather(null, 0, 0)),
            "codec", List.of(() -> ShuffleSpec.repartition(QUERY, 0).withRowsOf(null), () -> new ObjectShuffleSpec<>(ShuffleSpec.repartition(QUERY, 0), null)),
            "limit", List.of(() -> Wait.atMost(null))));
    all(
        Map.of(
            "memory", List.of(() -> RowBuffer.over(null)),
            "worker", List.of(() -> new QueryScope(null, QUERY)),
            "shuffle", List.of(() -> ExchangePart.of((Shuffle) null, null, null), () -> ExchangePart.of((ObjectShuffle<?>) null, null, null))));
    String one = assertThrows(NullPointerException.class, () -> builder.cluster(0, Arrays.asList("a:1", null))).getMessage();
    assertEquals("nodes[1]", one);
    one = assertThrows(NullPointerException.class, () -> new SchemaCodec(Arrays.asList((Column) null))).getMessage();
    assertEquals("schema[0]", one);
    one = assertThrows(NullPointerException.class, () -> Endpoint.channelMemory(builder.build(), Arrays.asList((ChannelSpec) null))).getMessage();
    assertEquals("channels[0]", one);
  }

  @Test
  void ofSessionsAndWorkers() {
    try (Cluster cluster = new Cluster("shm", 1, 1)) {
      Session session = cluster.session(0);
      Worker worker = session.workers().get(0);
      all(
          Map.of(
              "query", List.of(
                  () -> session.declareQuery(null, 0),
                  () -> session.cancelQuery(null, "why"),
                  () -> session.shuffleMetrics(null),
                  () -> worker.endQuery(null),
                  () -> worker.endQuery(null, NOW),
                  () -> new QueryScope(worker, null),
                  () -> worker.endQuery(null, new Error()),
                  () -> worker.endQueryAsync(null)),
              "participants", List.of(() -> session.declareQuery(QUERY, (int[]) null)),
              "reason", List.of(() -> session.cancelQuery(QUERY, null)),
              "address", List.of(() -> session.addNode(0, null)),
              "listener", List.of(() -> session.listen(null)),
              "wait", List.of(
                  () -> session.awaitNode(0, null),
                  () -> session.awaitNodeAsync(0, null),
                  () -> worker.waitUntil(() -> true, null),
                  () -> worker.exchange(List.of(), null),
                  () -> new QueryScope(worker, QUERY).end(null),
                  () -> new QueryScope(worker, QUERY).fail(new Error(), null),
                  () -> worker.endQuery(QUERY, (Wait<?>) null),
                  () -> worker.endQuery(QUERY, new Error(), null)),
              "spec", List.of(() -> worker.openShuffle((ShuffleSpec) null), () -> worker.openShuffle((ObjectShuffleSpec<?>) null)),
              "condition", List.of(() -> worker.waitUntil(null), () -> worker.waitUntil(null, NOW)),
              "progress", List.of(() -> worker.whenReady(null)),
              "failure", List.of(() -> worker.endQuery(QUERY, (Throwable) null), () -> new QueryScope(worker, QUERY).fail(null), () -> worker.endQueryAsync(QUERY, null))));
      all(Map.of("parts", List.of(() -> worker.exchange(null), () -> worker.exchange(null, NOW))));
    }
  }

  @Test
  void ofShufflesSendersAndReceivers() {
    try (Cluster cluster = new Cluster("shm", 1, 1);
        Shuffle shuffle = cluster.openShuffle(8)) {
      ShuffleSender sender = shuffle.sender();
      ShuffleReceiver receiver = shuffle.receiver();
      LongSender longs = sender.longs();
      MemorySender memory = sender.memory();
      ByteBuffer bytes = ByteBuffer.allocateDirect(8);
      IntBuffer numbers = ByteBuffer.allocateDirect(8).order(ByteOrder.nativeOrder()).asIntBuffer();
      ObjectSender<Long> objects = sender.objects(RowCodecs.LONG);
      Batch batch = receiver.newBatch();
      byte[] row = new byte[8];
      int[] first = {0};
      all(
          Map.of(
              "row", List.of(
                  () -> sender.send(0, null, 0, 8),
                  () -> sender.send(0, null, 0, 8, NOW),
                  () -> sender.multicast(first, null, 0, 8, NOW),
                  () -> sender.broadcast(null, 0, 8, NOW)),
              "receivers", List.of(
                  () -> memory.sendRows(bytes, 0, 1, null, NOW),
                  () -> memory.sendRows(bytes, numbers, 0, 1, null, NOW),
                  () -> memory.sendParts(null, new ByteBuffer[] {bytes}, NOW),
                  () -> sender.multicast(null, row, 0, 8, NOW), () -> objects.multicast(null, 1L, NOW)),
              "wait", List.of(
                  () -> sender.send(0, row, 0, 8, null),
                  () -> sender.multicast(first, row, 0, 8, null),
                  () -> sender.broadcast(row, 0, 8, null),
                  () -> longs.sendAll(new long[1], 0, 1, Partition.values()[0], null),
                  () -> memory.sendRows(bytes, 0, 1, numbers, null),
                  () -> memory.sendParts(first, new ByteBuffer[] {bytes}, null),
                  () -> receiver.receive(batch, null),
                  () -> receiver.receiveInto(batch, ByteBuffer::allocateDirect, null),
                  () -> receiver.receiveFrom(0, batch, null),
                  () -> sender.finish(null)),
              "codec", List.of(() -> sender.objects(null), () -> receiver.objects(null), () -> receiver.merge(null, (a, b) -> 0)),
              "order", List.of(() -> receiver.merge(RowCodecs.LONG, null)),
              "batch", List.of(
                  () -> receiver.receive(null, NOW), () -> receiver.receiveInto(null, ByteBuffer::allocateDirect, NOW), () -> receiver.receiveFrom(0, null, NOW)),
              "rows", List.of(
                  () -> longs.sendAll(null, 0, 0, Partition.values()[0], NOW),
                  () -> memory.sendRows(null, 0, 1, numbers, NOW),
                  () -> memory.sendRows(null, numbers, 0, 1, numbers, NOW),
                  () -> memory.sendAll(null, 0, 1, 0, 8, Partition.values()[0], NOW)),
              "partition", List.of(() -> longs.sendAll(new long[1], 0, 1, null, NOW), () -> memory.sendAll(bytes, 0, 1, 0, 8, null, NOW)),
              "objects", List.of(() -> objects.sendAll(null, 0, 0, object -> 0, NOW)),
              "receiverOf", List.of(() -> objects.sendAll(List.of(1L), 0, 1, null, NOW))));
      all(
          Map.of(
              "offsets", List.of(
                  () -> memory.sendRows(bytes, (IntBuffer) null, 0, 1, numbers, NOW),
                  () -> memory.sendRows(bytes, (LongBuffer) null, 0, 1, numbers, NOW)),
              "pieces", List.of(() -> memory.sendParts(first, null, NOW), () -> memory.sendParts(0, (ByteBuffer[]) null), () -> memory.sendParts(0, null, NOW)),
              "addresses", List.of(() -> memory.sendParts(first, null, new long[0], NOW)),
              "bytes", List.of(() -> memory.sendParts(first, new long[0], null, NOW)),
              "allocate", List.of(() -> receiver.receiveInto(batch, null), () -> receiver.receiveInto(batch, null, NOW))));
    }
  }

  @Test
  void ofPollers() throws Exception {
    try (EndpointSide side = new EndpointSide("shm")) {
      Poller poller = side.poller;
      all(
          Map.of(
              "address", List.of(() -> poller.connect(null, new ChannelSpec())),
              "spec", List.of(() -> poller.connect("127.0.0.1:1", null)),
              "events", List.of(() -> poller.poll(null), () -> poller.release(null)),
              "wait", List.of(() -> poller.await(null), () -> poller.await(null, WakeFor.ROOM)),
              "wakeFor", List.of(() -> poller.await(NOW, null), () -> poller.arm(null))));
    }
    RowBuffer buffer = RowBuffer.over(ByteBuffer.allocateDirect(64));
    all(Map.of("codec", List.of(() -> buffer.tryWrite(null, 1L, 0), () -> buffer.read(null, 0, 8))));
  }
}
