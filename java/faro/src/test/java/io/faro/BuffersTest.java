package io.faro;

import static io.faro.Checks.failsBy;
import static io.faro.Checks.received;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;
import java.util.List;
import java.util.Random;
import java.util.function.IntFunction;
import java.util.stream.Stream;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Rows from and to buffers of the engine. */
@Timeout(20)
class BuffersTest {
  private static final int BEGIN = 3; // where bytes stand in a buffer: not at its beginning
  private static final byte[] ROW = new byte[100];

  static {
    new Random(5).nextBytes(ROW);
  }

  static Stream<Named<IntFunction<ByteBuffer>>> buffers() {
    return Stream.of(
        Named.of("direct", ByteBuffer::allocateDirect),
        Named.of("on the heap", ByteBuffer::allocate),
        Named.of("a slice of the heap", bytes -> ByteBuffer.allocate(bytes + 9).position(7).slice()),
        Named.of("a slice, direct", bytes -> ByteBuffer.allocateDirect(bytes + 9).position(7).slice()));
  }

  private static ByteBuffer full(ByteBuffer buffer) {
    return buffer.position(BEGIN).put(ROW).flip().position(BEGIN);
  }

  @ParameterizedTest
  @MethodSource("buffers")
  void aRowGoesFromABufferAndIntoOne(IntFunction<ByteBuffer> allocate) throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 1)) {
      cluster.shuffle(0, (worker, shuffle) -> {
        RowWriter writer = shuffle.sender().rows();
        ByteBuffer from = full(allocate.apply(200));
        for (ByteBuffer each : List.of(from, full(allocate.apply(200)).asReadOnlyBuffer())) {
          assertEquals(Outcome.DONE, writer.claim(0, 4 + ROW.length, Wait.NONE));
          writer.putInt(0, 77);
          writer.putBytes(4, each);
          assertFalse(each.hasRemaining());
          assertThrows(IndexOutOfBoundsException.class, () -> writer.putBytes(5, full(allocate.apply(200))));
          writer.commit(4 + ROW.length);
        }
        assertEquals(Outcome.DONE, shuffle.sender().finish(Wait.NONE));

        Batch batch = shuffle.receiver().newBatch();
        int rows = 0;
        while (shuffle.receiver().receive(batch) == Outcome.DONE) {
          for (; batch.nextRow(); rows++) {
            assertEquals(77, batch.getInt(batch.rowOffset()));
            ByteBuffer to = allocate.apply(200).position(BEGIN).limit(BEGIN + ROW.length);
            batch.getBytes(batch.rowOffset() + 4, to);
            assertEquals(BEGIN + ROW.length, to.position());
            byte[] copied = new byte[ROW.length];
            to.position(BEGIN).get(copied);
            assertArrayEquals(ROW, copied);
            assertEquals(0, to.clear().get(BEGIN - 1));
            assertEquals(0, to.get(BEGIN + ROW.length));
          }
        }
        assertEquals(2, rows);
      });
    }
  }

  @Test
  void aWholeBatchIsCopiedAndNothingBeyondIt() throws Exception {
    try (Cluster cluster = new Cluster("auto", 1, 1)) {
      cluster.shuffle(8, (worker, shuffle) -> {
        assertEquals(Outcome.DONE, shuffle.sender().longs().send(0, 0x0102030405060708L, Wait.NONE));
        assertEquals(Outcome.DONE, shuffle.sender().finish(Wait.NONE));
        Batch batch = received(shuffle);
        ByteBuffer all = ByteBuffer.allocate(batch.bytes());
        batch.getBytes(0, all);
        assertEquals(0x0807060504030201L, all.flip().getLong());
        assertThrows(IndexOutOfBoundsException.class, () -> batch.getBytes(0, ByteBuffer.allocate(9)));
        assertThrows(IndexOutOfBoundsException.class, () -> batch.getBytes(1, ByteBuffer.allocateDirect(8)));
        assertThrows(
            ReadOnlyBufferException.class, () -> batch.getBytes(0, ByteBuffer.allocate(8).asReadOnlyBuffer()));
        batch.release();
        failsBy(Code.WRONG_STATE, () -> batch.getBytes(0, ByteBuffer.allocate(8)));
        assertEquals(Outcome.END_OF_STREAM, shuffle.receiver().receive(batch));
      });
    }
  }
}
