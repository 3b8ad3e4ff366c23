package io.faro;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(20)
class RowBufferTest {
  private static final RowCodec<Object[]> ROWS =
      new SchemaCodec(
          List.of(Column.of(ColumnType.LONG), Column.nullable(ColumnType.STRING), Column.decimal(9, 2, true)));

  private final RowBuffer buffer = RowBuffer.over(ByteBuffer.allocateDirect(200).position(150));

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
    ByteBuffer memory = ByteBuffer.allocate(16);
    assertEquals(8, RowBuffer.over(memory).tryWrite(RowCodecs.LONG, 0x0102030405060708L, 3));
    assertEquals(8, memory.get(3));
    assertEquals(1, memory.get(10));
  }

  @Test
  void aRowThatMayBeTooLargeIsNotWritten() {
    String row = "x".repeat(30); // up to 90 bytes of UTF-8
    assertEquals(30, buffer.tryWrite(RowCodecs.STRING, row, 110));
    assertEquals(RowBuffer.NO_ROOM, buffer.tryWrite(RowCodecs.STRING, row, 111));
    assertEquals(RowBuffer.NO_ROOM, buffer.tryWrite(RowCodecs.STRING, "", 201));
    assertEquals(row, buffer.read(RowCodecs.STRING, 110, 30));
  }

  @Test
  void nothingIsReadOrWrittenBeyondIt() {
    assertThrows(IndexOutOfBoundsException.class, () -> buffer.read(RowCodecs.LONG, 193, 8));
    assertThrows(IndexOutOfBoundsException.class, () -> buffer.tryWrite(RowCodecs.LONG, 1L, -1));
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
    FaroException refused = assertThrows(FaroException.class, () -> buffer.tryWrite(grows, row, 0));
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
    buffer.handOver();
    assertEquals(5L, CompletableFuture.supplyAsync(() -> buffer.read(RowCodecs.LONG, 0, 8)).join());
  }
}
