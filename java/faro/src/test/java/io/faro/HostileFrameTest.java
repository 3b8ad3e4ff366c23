package io.faro;

import static io.faro.Checks.received;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Frames of real rows, of which another process has changed any bytes: each row is one, or a {@link
 * FaroException} says that it is none. -Dfaro.test.seed=… repeats a run, -Dfaro.test.rounds=… makes a
 * longer one.
 */
@Timeout(60)
class HostileFrameTest {
  private static final int MUTATIONS = 100; // of one batch

  private final long seed = Long.getLong("faro.test.seed", System.nanoTime());
  private final int rounds = Integer.getInteger("faro.test.rounds", 300);
  private final Random random = new Random(seed);
  private final RandomRows any = new RandomRows(random, 100);
  private final GuardedMemory memory = new GuardedMemory(1 << 20);
  private final RowBuffer again = RowBuffer.over(ByteBuffer.allocateDirect(1 << 18));
  private Cluster cluster;
  private int rows;
  private int refused;

  @BeforeEach
  void open() {
    cluster = new Cluster("auto", 1, 1);
  }

  @AfterEach
  void close() {
    cluster.close();
  }

  @Test
  void anyBytesAreRowsOrRefused() {
    for (int round = 0; round < rounds; round++) {
      List<Column> schema = any.schema(10);
      SchemaCodec codec = new SchemaCodec(schema);
      try (Shuffle shuffle = cluster.openShuffle(codec.rowBytes())) {
        byte[] good = frameOf(shuffle, codec, schema);
        Batch batch = shuffle.receiver().newBatch();
        for (int i = 0; i < MUTATIONS; i++) {
          byte[] bytes = mutated(good);
          String which = "seed " + seed + ", round " + round + ", mutation " + i + ", " + schema;
          readAll(batch, bytes, codec, which);
          readAll(batch, bytes, RowCodecs.BYTES, which);
          readAll(batch, bytes, RowCodecs.STRING, which);
          readAll(batch, bytes, RowCodecs.LONG, which);
        }
      }
    }
    assertTrue(rows > 10 * rounds && refused > 10 * rounds, "seed " + seed + ": " + rows + ", " + refused);
  }

  /** Reads all rows as an {@link ObjectReceiver} does. */
  private <T> void readAll(Batch batch, byte[] bytes, RowCodec<T> codec, String which) {
    batch.place(memory.put(bytes), null, bytes.length, 1 + random.nextInt(20), codec.rowBytes(), 0);
    try {
      while (batch.nextRow()) {
        T object = codec.read(batch, batch.rowOffset(), batch.rowLength());
        if (object instanceof byte[] copy) {
          assertEquals(batch.rowLength(), copy.length, which);
        }
        writeAgain(codec, object, which);
        rows++;
      }
    } catch (FaroException problem) {
      assertEquals(Code.PROTOCOL_ERROR, problem.code(), () -> which + ": " + problem);
      refused++;
    } catch (RuntimeException problem) {
      fail(which, problem);
    } finally {
      batch.forget();
    }
  }

  private <T> void writeAgain(RowCodec<T> codec, T object, String which) {
    try {
      assertTrue(again.tryWrite(codec, object, 0) >= 0, which);
    } catch (FaroException problem) { // 8 and 16 bytes hold more digits than 18 and 38
      assertEquals(Code.INVALID_ARGUMENT, problem.code(), () -> which + ": " + problem);
      assertTrue(problem.getMessage().contains("too many digits"), () -> which + ": " + problem);
    }
  }

  private byte[] frameOf(Shuffle shuffle, SchemaCodec codec, List<Column> schema) {
    ObjectSender<Object[]> sender = shuffle.sender().objects(codec);
    for (int i = 1 + random.nextInt(10); i > 0; i--) {
      assertEquals(Outcome.DONE, sender.send(0, any.row(schema), Wait.NONE));
    }
    assertEquals(Outcome.DONE, shuffle.sender().finish(Wait.NONE));
    try (Batch batch = received(shuffle)) {
      byte[] bytes = new byte[batch.bytes()];
      batch.getBytes(0, bytes, 0, bytes.length);
      return bytes;
    }
  }

  private byte[] mutated(byte[] good) {
    byte[] bytes = new byte[random.nextInt(4) == 0 ? random.nextInt(good.length + 1) : good.length];
    System.arraycopy(good, 0, bytes, 0, bytes.length);
    for (int i = random.nextInt(4); i > 0 && bytes.length > 0; i--) {
      int at = random.nextInt(bytes.length);
      bytes[at] =
          switch (random.nextInt(4)) {
            case 0 -> 0;
            case 1 -> (byte) 0xff;
            case 2 -> (byte) (bytes[at] ^ 1 << random.nextInt(8));
            default -> (byte) random.nextInt();
          };
    }
    return bytes;
  }
}
