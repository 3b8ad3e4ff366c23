package io.faro.jmh;

import io.faro.Column;
import io.faro.ColumnType;
import io.faro.RowBuffer;
import io.faro.SchemaCodec;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;
import org.openjdk.jmh.infra.Blackhole;

/**
 * What the codec of an {@code Object[]} of five mixed columns takes to write a row and to read one, each by
 * itself and in memory that stays where it is: {@link Boundary#objectRow} without the shuffle. With
 * {@code -prof gc} the bytes that it allocates for a row.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 3, time = 1)
@Fork(1)
public class Codec {
  private static final int ROWS = 1024;
  private static final int ROOM = 128; // more than any row takes

  static SchemaCodec ofFiveColumns() {
    return new SchemaCodec(
        List.of(
            Column.of(ColumnType.LONG),
            Column.nullable(ColumnType.INT),
            Column.decimal(15, 2, false),
            Column.of(ColumnType.DOUBLE),
            Column.of(ColumnType.STRING)));
  }

  /** Rows that differ, and their bytes. */
  @State(Scope.Thread)
  public static class Rows {
    final SchemaCodec codec = ofFiveColumns();
    final RowBuffer buffer = RowBuffer.over(ByteBuffer.allocateDirect(ROWS * ROOM));
    final Object[][] rows = new Object[ROWS][];
    final int[] bytes = new int[ROWS];

    /** Draws the rows and writes them once. */
    public Rows() {
      SplittableRandom random = new SplittableRandom(1);
      for (int i = 0; i < ROWS; i++) {
        rows[i] =
            new Object[] {
              random.nextLong(),
              random.nextInt(10) == 0 ? null : (Integer) random.nextInt(),
              BigDecimal.valueOf(random.nextLong(1_000_000_000_000L), 2),
              random.nextDouble(),
              "Customer#" + random.nextInt(1_000_000_000)
            };
        bytes[i] = buffer.tryWrite(codec, rows[i], i * ROOM);
      }
    }
  }

  /** From an array into memory. */
  @Benchmark
  @OperationsPerInvocation(ROWS)
  public long write(Rows state) {
    long bytes = 0;
    for (int i = 0; i < ROWS; i++) {
      bytes += state.buffer.tryWrite(state.codec, state.rows[i], i * ROOM);
    }
    return bytes;
  }

  /** From memory into a new array with new values. */
  @Benchmark
  @OperationsPerInvocation(ROWS)
  public void read(Rows state, Blackhole reader) {
    for (int i = 0; i < ROWS; i++) {
      reader.consume(state.buffer.read(state.codec, i * ROOM, state.bytes[i]));
    }
  }
}
