package io.faro;

import static io.faro.Checks.failsBy;
import static io.faro.Checks.failure;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;

@Timeout(20)
class RowBufferTest {
  private static final RowCodec<Object[]> ROWS =
      new SchemaCodec(
          List.of(Column.of(ColumnType.LONG), Column.nullable(ColumnType.STRING), Column.decimal(9, 2, true)));

  private final ByteBuffer memory = ByteBuffer.allocateDirect(200).order(ByteOrder.LITTLE_ENDIAN);
  private final RowBuffer buffer = RowBuffer.over(memory.duplicate().position(150));

  @Test
  void rowsAreReadWhereTheyWereWritten() {
    Object[][] rows = {{1L, "one", null}, {-2L, null, new java.math.BigDecimal("3.25")}, {3L, "", null}};
    int[] at = {0, 60, 120};
    int[] bytes = new int[rows.length];
    for (int i = 0; i < rows.length; i++) {
      bytes[i] = buffer.tryWrite(ROWS, rows[i], at[i]);
    }
    for (int i = 0; i < rows.length; i++) {
      assertArrayEquals(rows[i], buffer.read(ROWS, at[i], bytes[i]));
    }
  }

  @Test
  void theBytesAreThoseOfTheCodec() {
    ByteBuffer memory = ByteBuffer.allocateDirect(16);
    assertEquals(8, RowBuffer.over(memory).tryWrite(RowCodecs.LONG, 0x0102030405060708L, 3));
    assertEquals(8, memory.get(3));
    assertEquals(1, memory.get(10));
  }

  @Test
  void memoryThatIsNotDirectIsRefused() {
    refused("not java.nio.HeapByteBuffer", () -> RowBuffer.over(ByteBuffer.allocate(16)));
    refused("can be written", () -> RowBuffer.over(memory.asReadOnlyBuffer()));
  }

  @Test
  void aRowThatMayBeTooLargeIsNotWritten() {
    String row = "x".repeat(30); // up to 90 bytes of UTF-8
    assertEquals(30, buffer.tryWrite(RowCodecs.STRING, row, 110));
    assertEquals(RowBuffer.NO_ROOM, buffer.tryWrite(RowCodecs.STRING, row, 111));
    assertEquals(RowBuffer.NO_ROOM, buffer.tryWrite(RowCodecs.STRING, "", 201));
    assertEquals(row, buffer.read(RowCodecs.STRING, 110, 30));
  }

  private static void refused(String named, Executable call) {
    FaroException problem = failsBy(Code.INVALID_ARGUMENT, call, named);
    assertEquals(Category.OPERATION, problem.category());
  }

  @Test
  void nothingIsReadOrWrittenBeyondIt() {
    refused("at 193 with 8 bytes", () -> buffer.read(RowCodecs.LONG, 193, 8));
    refused("at -1 with 8 bytes", () -> buffer.read(RowCodecs.LONG, -1, 8));
    refused("offset -1", () -> buffer.tryWrite(RowCodecs.LONG, 1L, -1));
  }

  @Test
  void aDamagedLengthIsOneClearError() {
    for (int bytes : new int[] {-1, Integer.MIN_VALUE, 201, Integer.MAX_VALUE}) {
      for (RowCodec<?> codec : List.of(RowCodecs.BYTES, RowCodecs.STRING, ROWS, RowCodecs.LONG)) {
        refused("at 0 with " + bytes + " bytes", () -> buffer.read(codec, 0, bytes));
      }
    }
    refused("a row of the codec 8", () -> buffer.read(RowCodecs.LONG, 0, 7));
  }

  @Test
  void damagedLengthsWithinARowAreTheSameError() {
    int bytes = buffer.tryWrite(ROWS, new Object[] {1L, "one", null}, 0);
    for (int length : new int[] {-1, Integer.MIN_VALUE, 4, Integer.MAX_VALUE}) {
      memory.putInt(bytes - 3 - Integer.BYTES, length);
      refused("the bytes in a row buffer are damaged", () -> buffer.read(ROWS, 0, bytes));
    }
  }

  /** An int, which says how many bytes follow. */
  private static final class Trusting extends CodecAround<byte[]> {
    Trusting() {
      super(RowCodecs.BYTES);
    }

    @Override
    public byte[] read(Batch from, int at, int bytes) {
      byte[] object = new byte[from.getInt(at)];
      from.getBytes(at + Integer.BYTES, object, 0, object.length);
      return object;
    }
  }

  @Test
  void whatACodecOfTheEnginesOwnMakesOfDamagedBytesIsTheSameError() {
    for (int length : new int[] {-1, 1000}) {
      memory.putInt(0, length);
      refused("at 0 with 10 bytes", () -> buffer.read(new Trusting(), 0, 10));
    }
  }

  @Test
  void aCodecCannotUseItAsAShuffle() {
    RowCodec<Long> misused =
        new CodecAround<>(RowCodecs.LONG) {
          @Override
          public int write(Long object, RowWriter to) {
            to.claim(0, 8, Wait.NONE);
            return 8;
          }

          @Override
          public Long read(Batch from, int at, int bytes) {
            from.release();
            return 0L;
          }
        };
    failsBy(Code.WRONG_STATE, () -> buffer.tryWrite(misused, 1L, 0));
    failsBy(Code.WRONG_STATE, () -> buffer.read(misused, 0, 8));
    buffer.tryWrite(RowCodecs.LONG, 5L, 0);
    assertEquals(5L, buffer.read(RowCodecs.LONG, 0, 8));
  }

  @Test
  void aRowThatGrowsWhileItIsSentStaysWithinItsPlace() {
    RowCodec<Object[]> grows =
        new CodecAround<>(ROWS) {
          @Override
          public int maxBytes(Object[] row) {
            int bytes = super.maxBytes(row);
            row[1] = "x".repeat(30);
            return bytes;
          }
        };
    Object[] row = {1L, "", null};
    int neighbour = ROWS.maxBytes(row);
    buffer.tryWrite(RowCodecs.LONG, 5L, neighbour);
    FaroException refused = failure(() -> buffer.tryWrite(grows, row, 0));
    assertEquals("a row was changed while it was sent", refused.getMessage());
    assertEquals(5L, buffer.read(RowCodecs.LONG, neighbour, 8));
  }

  @Test
  void anotherThreadUsesItOnlyAfterItWasHandedOver() {
    buffer.tryWrite(RowCodecs.LONG, 5L, 0);
    CompletionException refused =
        assertThrows(
            CompletionException.class,
            () -> CompletableFuture.supplyAsync(() -> buffer.read(RowCodecs.LONG, 0, 8)).join());
    assertEquals(Code.WRONG_STATE, ((FaroException) refused.getCause()).code());
    assertTrue(refused.getCause().getMessage().startsWith("the row buffer belongs to thread \""));
    buffer.releaseOwnership();
    assertEquals(5L, CompletableFuture.supplyAsync(() -> buffer.read(RowCodecs.LONG, 0, 8)).join());
  }
}
