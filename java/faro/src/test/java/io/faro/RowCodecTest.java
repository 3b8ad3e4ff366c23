package io.faro;

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
      QueryId query = cluster.session(0).beginQuery();
      cluster.onEachWorker(
          worker -> {
            try (Shuffle shuffle = worker.openShuffle(new ShuffleSpec(query, 1, codec.rowBytes()))) {
              ObjectSender<T> sender = shuffle.sender(codec);
              for (T object : objects) {
                assertEquals(Outcome.DONE, sender.send(1 - worker.number(), object));
              }
              assertEquals(Outcome.DONE, shuffle.finish());
              ObjectReceiver<T> receiver = shuffle.receiver(codec);
              for (T object : objects) {
                assertEquals(Outcome.DONE, receiver.next());
                check.equal(object, receiver.get());
                assertEquals(1 - worker.number(), receiver.sender());
              }
              assertEquals(Outcome.END_OF_STREAM, receiver.next());
            }
            worker.endQuery(query);
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
  void aCodecThatDoesNotFitTheSendersIsRefusedByName() throws Exception {
    RowCodec<Object[]> rows =
        new SchemaCodec(List.of(Column.nullable(ColumnType.STRING), Column.decimal(9, 2, false)));
    try (Cluster cluster = new Cluster("auto", 1, 1)) {
      for (RowCodec<?> codec : List.of(RowCodecs.LONG, RowCodecs.BYTES, rows)) {
        ShuffleSpec spec = new ShuffleSpec(cluster.session(0).beginQuery(), 1, 0);
        try (Shuffle shuffle = cluster.worker(0).openShuffle(spec)) {
          shuffle.sender(RowCodecs.STRING).trySend(0, "by reference");
          shuffle.tryFinish();
          FaroException refused = assertThrows(FaroException.class, () -> shuffle.receiver(codec).tryNext());
          assertEquals(Code.INVALID_ARGUMENT, refused.code());
          assertEquals(
              "stage 1: worker 0 sends by a codec for STRING, worker 0 receives by one for " + codec.format(),
              refused.getMessage());
          FaroException failed = assertThrows(FaroException.class, () -> shuffle.receiver(codec).tryNext());
          assertEquals(Code.QUERY_CANCELLED, failed.code());
        }
      }
      assertEquals("schema(STRING or null, DECIMAL_18(2))", rows.format());
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
          public String read(Frame from, int at, int bytes) {
            return RowCodecs.STRING.read(from, at, bytes);
          }
        };
    try (Cluster cluster = new Cluster("auto", 1, 1)) {
      Worker worker = cluster.worker(0);
      try (Shuffle shuffle = worker.openShuffle(new ShuffleSpec(cluster.session(0).beginQuery(), 1, 0))) {
        ObjectSender<String> sender = shuffle.sender(picky);
        sender.trySend(0, "one");
        assertThrows(IllegalArgumentException.class, () -> sender.trySend(0, "bad"));
        sender.trySend(0, "two");
        assertEquals(Outcome.DONE, shuffle.tryFinish());
        ObjectReceiver<String> receiver = shuffle.receiver(picky);
        assertEquals(Outcome.DONE, receiver.tryNext());
        assertEquals("one", receiver.get());
        assertEquals(Outcome.DONE, receiver.tryNext());
        assertEquals("two", receiver.get());
        assertEquals(Outcome.END_OF_STREAM, receiver.tryNext());
      }
      try (Shuffle shuffle = worker.openShuffle(new ShuffleSpec(cluster.session(0).beginQuery(), 1, 16))) {
        assertThrows(FaroException.class, () -> shuffle.sender(RowCodecs.LONG));
        assertThrows(FaroException.class, () -> shuffle.receiver(RowCodecs.STRING));
      }
    }
  }
}
