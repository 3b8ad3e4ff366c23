package io.faro;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(20)
class RowCodecTest {
  private interface Check<T> {
    void equal(T expected, T actual);
  }

  /** Every object arrives equal, in order, at a receiver in another node. */
  private static <T> void carries(RowCodec<T> codec, List<T> objects, Check<T> check) throws Exception {
    try (Cluster cluster = new Cluster("shm", 2, 1)) {
      QueryId query = cluster.session(0).beginQuery();
      cluster.shuffle(new ShuffleSpec(query, 1, codec.rowBytes()), (worker, shuffle) -> {
        ObjectSender<T> sender = shuffle.sender().objects(codec);
        for (T object : objects) {
          assertEquals(Outcome.DONE, sender.send(1 - worker.number(), object));
        }
        assertEquals(Outcome.DONE, shuffle.sender().finish());
        ObjectReceiver<T> receiver = shuffle.receiver().objects(codec);
        for (T object : objects) {
          assertEquals(Outcome.DONE, receiver.next());
          check.equal(object, receiver.get());
          assertEquals(1 - worker.number(), receiver.sender());
        }
        assertEquals(Outcome.END_OF_STREAM, receiver.next());
      });
    }
  }

  @Test
  void longs() throws Exception {
    List<Long> values = new Random(1).longs(50_000).boxed().collect(Collectors.toList());
    carries(RowCodecs.LONG, values, (expected, actual) -> assertEquals(expected, actual));
  }

  @Test
  void bytesOfAnyLength() throws Exception {
    Random random = new Random(2);
    List<byte[]> values =
        IntStream.range(0, 2_000)
            .mapToObj(i -> new byte[i % 100 == 0 ? 50_000 : random.nextInt(300)])
            .collect(Collectors.toList());
    values.forEach(random::nextBytes);
    carries(RowCodecs.BYTES, values, (expected, actual) -> assertArrayEquals(expected, actual));
  }

  @Test
  void stringsOfAnyCharacters() throws Exception {
    Random random = new Random(3);
    List<String> values =
        IntStream.range(0, 2_000)
            .mapToObj(
                i ->
                    random.ints(random.nextInt(50), 1, 0x10ffff)
                        .collect(StringBuilder::new, StringBuilder::appendCodePoint, StringBuilder::append)
                        .toString())
            .collect(Collectors.toList());
    carries(RowCodecs.STRING, values, (expected, actual) -> assertEquals(expected, actual));
  }

  @Test
  void aSurrogateWithoutItsPartnerArrivesAtWhateverNode() throws Exception {
    List<String> values = List.of("\ud800", "\udfff", "?", "a\udbffb?", "\udc00\ud800", "\ud83d\ude00\ud83d");
    carries(RowCodecs.STRING, values, (expected, actual) -> assertEquals(expected, actual));
    RowCodec<Object[]> rows = new SchemaCodec(List.of(Column.of(ColumnType.STRING)));
    List<Object[]> same = values.stream().map(value -> new Object[] {value}).collect(Collectors.toList());
    carries(rows, same, (expected, actual) -> assertArrayEquals(expected, actual));
  }

  @Test
  void aCodecThatDoesNotFitTheSendersFailsTheQueryAtWhateverNode() throws Exception {
    RowCodec<Object[]> rows =
        new SchemaCodec(List.of(Column.nullable(ColumnType.STRING), Column.decimal(9, 2, false)));
    assertEquals("schema(STRING or null, DECIMAL_18(2))", rows.format());
    for (int nodes = 1; nodes <= 2; nodes++) {
      try (Cluster cluster = new Cluster("auto", nodes, 2 / nodes)) {
        for (RowCodec<?> codec : List.of(RowCodecs.LONG, RowCodecs.BYTES, rows)) {
          failsByBothNames(cluster, codec, true);
          failsByBothNames(cluster, codec, false);
        }
      }
    }
  }

  private static void failsByBothNames(Cluster cluster, RowCodec<?> codec, boolean receiverIsFirst) {
    QueryId query = cluster.session(0).beginQuery();
    ShuffleSpec spec = new ShuffleSpec(query, 1, 0, new int[] {0}, new int[] {1});
    FaroException failed;
    try (Shuffle sending = cluster.worker(0).openShuffle(spec);
        Shuffle receiving = cluster.worker(1).openShuffle(spec)) {
      ObjectReceiver<?> first = receiverIsFirst ? receiving.receiver().objects(codec) : null;
      assertEquals(Outcome.DONE, sending.sender().objects(RowCodecs.STRING).send(0, "by reference, if it can be", Wait.NONE));
      assertEquals(Outcome.DONE, sending.sender().finish(Wait.NONE));
      failed =
          assertThrows(
              FaroException.class, () -> (receiverIsFirst ? first : receiving.receiver().objects(codec)).next());
    }
    assertEquals(Code.STAGE_MISMATCH, failed.code());
    assertEquals(1, failed.stage().getAsInt());
    String message = failed.getMessage();
    for (String part :
        List.of(
            "query " + query,
            "the rows that worker 0 of node 0",
            " sends are STRING, but worker 1 of node " + cluster.worker(1).session().node(),
            " reads them as " + codec.format())) {
      assertTrue(message.contains(part), message);
    }
    for (int worker = 0; worker < 2; worker++) {
      Worker each = cluster.worker(worker);
      assertEquals(
          message, assertThrows(FaroException.class, () -> each.endQuery(query)).getMessage());
    }
  }

  @Test
  void aWorkerSendsAndReceivesTheRowsOfAStageByOneFormat() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 1);
        Shuffle shuffle = cluster.worker(0).openShuffle(new ShuffleSpec(cluster.session(0).beginQuery(), 1, 0))) {
      shuffle.sender().objects(RowCodecs.STRING);
      shuffle.sender().objects(RowCodecs.STRING);
      FaroException other = assertThrows(FaroException.class, () -> shuffle.sender().objects(RowCodecs.BYTES));
      assertEquals("stage 1: worker 0 sends its rows as STRING, not as BYTES", other.getMessage());
      shuffle.receiver().objects(RowCodecs.BYTES);
      other = assertThrows(FaroException.class, () -> shuffle.receiver().objects(RowCodecs.STRING));
      assertEquals("stage 1: worker 0 reads the rows as BYTES, not as STRING", other.getMessage());
      assertEquals(Code.INVALID_ARGUMENT, other.code());
    }
  }

  @Test
  void aRowWhoseCodecThrowsNeverExisted() throws Exception {
    RowCodec<String> picky =
        new RowCodec<>() {
          @Override
          public int rowBytes() {
            return 0;
          }

          @Override
          public int maxBytes(String object) {
            return 100;
          }

          @Override
          public int write(String object, RowWriter to) {
            if (object.startsWith("bad")) {
              to.putLong(0, -1);
              throw new IllegalArgumentException(object);
            }
            return RowCodecs.STRING.write(object, to);
          }

          @Override
          public String read(Batch from, int at, int bytes) {
            return RowCodecs.STRING.read(from, at, bytes);
          }
        };
    try (Cluster cluster = new Cluster("auto", 1, 1)) {
      Worker worker = cluster.worker(0);
      try (Shuffle shuffle = worker.openShuffle(new ShuffleSpec(cluster.session(0).beginQuery(), 1, 0))) {
        ObjectSender<String> sender = shuffle.sender().objects(picky);
        sender.send(0, "one", Wait.NONE);
        assertThrows(IllegalArgumentException.class, () -> sender.send(0, "bad", Wait.NONE));
        sender.send(0, "two", Wait.NONE);
        assertEquals(Outcome.DONE, shuffle.sender().finish(Wait.NONE));
        ObjectReceiver<String> receiver = shuffle.receiver().objects(picky);
        assertEquals(Outcome.DONE, receiver.next(Wait.NONE));
        assertEquals("one", receiver.get());
        assertEquals(Outcome.DONE, receiver.next(Wait.NONE));
        assertEquals("two", receiver.get());
        assertEquals(Outcome.END_OF_STREAM, receiver.next(Wait.NONE));
      }
      try (Shuffle shuffle = worker.openShuffle(new ShuffleSpec(cluster.session(0).beginQuery(), 1, 16))) {
        assertThrows(FaroException.class, () -> shuffle.sender().objects(RowCodecs.LONG));
        assertThrows(FaroException.class, () -> shuffle.receiver().objects(RowCodecs.STRING));
      }
    }
  }
}
