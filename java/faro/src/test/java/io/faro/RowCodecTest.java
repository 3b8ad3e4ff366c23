package io.faro;

import static io.faro.Checks.assertSays;
import static io.faro.Checks.failsBy;
import static io.faro.Checks.failure;
import static io.faro.Checks.messageOf;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

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
      cluster.shuffle(codec.rowBytes(), (worker, shuffle) -> {
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
    ShuffleSpec spec = cluster.spec(0, 0, 1);
    FaroException failed;
    try (Shuffle sending = cluster.worker(0).openShuffle(spec);
        Shuffle receiving = cluster.worker(1).openShuffle(spec)) {
      ObjectReceiver<?> first = receiverIsFirst ? receiving.receiver().objects(codec) : null;
      assertEquals(Outcome.DONE, sending.sender().objects(RowCodecs.STRING).send(0, "a string", Wait.NONE));
      assertEquals(Outcome.DONE, sending.sender().finish(Wait.NONE));
      failed = failure(() -> (receiverIsFirst ? first : receiving.receiver().objects(codec)).next());
    }
    assertSays(
        failed,
        Code.STAGE_MISMATCH,
        "query " + spec.query(),
        "the rows that worker 0 of node 0",
        " sends are STRING, but worker 1 of node " + cluster.worker(1).session().node(),
        " reads them as " + codec.format());
    assertEquals(1, failed.stage().getAsInt());
    for (Worker each : List.of(cluster.worker(0), cluster.worker(1))) {
      assertEquals(failed.getMessage(), messageOf(() -> each.endQuery(spec.query())));
    }
  }

  @Test
  void aWorkerSendsAndReceivesTheRowsOfAStageByOneFormat() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 1);
        Shuffle shuffle = cluster.openShuffle(0)) {
      shuffle.sender().objects(RowCodecs.STRING);
      shuffle.sender().objects(RowCodecs.STRING);
      String sent = "stage 1: worker 0 sends its rows as STRING, not as BYTES";
      assertEquals(sent, messageOf(() -> shuffle.sender().objects(RowCodecs.BYTES)));
      shuffle.receiver().objects(RowCodecs.BYTES);
      FaroException other = failsBy(Code.INVALID_ARGUMENT, () -> shuffle.receiver().objects(RowCodecs.STRING));
      assertEquals("stage 1: worker 0 reads the rows as BYTES, not as STRING", other.getMessage());
    }
  }

  @Test
  void aRowWhoseCodecThrowsNeverExisted() throws Exception {
    RowCodec<String> picky =
        new CodecAround<>(RowCodecs.STRING) {
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
            return super.write(object, to);
          }
        };
    try (Cluster cluster = new Cluster("auto", 1, 1)) {
      try (Shuffle shuffle = cluster.openShuffle(0)) {
        ObjectSender<String> sender = shuffle.sender().objects(picky);
        sender.send(0, "one", Wait.NONE);
        assertThrows(IllegalArgumentException.class, () -> sender.send(0, "bad", Wait.NONE));
        sender.send(0, "two", Wait.NONE);
        assertEquals(Outcome.DONE, shuffle.sender().finish(Wait.NONE));
        ObjectReceiver<String> receiver = shuffle.receiver().objects(picky);
        for (String expected : List.of("one", "two")) {
          assertEquals(Outcome.DONE, receiver.next(Wait.NONE));
          assertEquals(expected, receiver.get());
        }
        assertEquals(Outcome.END_OF_STREAM, receiver.next(Wait.NONE));
      }
      try (Shuffle shuffle = cluster.openShuffle(16)) {
        failure(() -> shuffle.sender().objects(RowCodecs.LONG));
        failure(() -> shuffle.receiver().objects(RowCodecs.STRING));
      }
    }
  }
}
