package io.faro.jmh;

import io.faro.Batch;
import io.faro.LongSender;
import io.faro.ObjectReceiver;
import io.faro.ObjectSender;
import io.faro.Outcome;
import io.faro.Partition;
import io.faro.RowWriter;
import io.faro.SchemaCodec;
import io.faro.Shuffle;
import io.faro.Wait;
import java.math.BigDecimal;
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

/**
 * One row sent and received, from one worker to another over shared memory, both on one thread:
 * what the way of a row costs, without anybody to wait for. Run it with {@code -prof gc}: on the
 * zero-copy level (all but objects) it must show 0 bytes per row.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 3, time = 1)
@Fork(1)
public class Boundary {
  /** Rows under way at once: they fit into a ring. */
  private static final int BATCH = 256;

  private static final int RECORD_BYTES = 100;

  /** Rows of one long each. */
  @State(Scope.Thread)
  public static class Longs extends Lane {
    final Shuffle from = sender(Long.BYTES);
    final Shuffle to = receiver(Long.BYTES);
    final LongSender sender = from.sender().longs();
    final Batch batch = to.receiver().newBatch();
    final long[] rows = new long[BATCH];
  }

  /** Sent one by one, in place; read in place. */
  @Benchmark
  @OperationsPerInvocation(BATCH)
  public long oneLong(Longs lane) {
    for (int i = 0; i < BATCH; i++) {
      Lane.check(lane.sender.send(0, i, Wait.NONE));
    }
    lane.from.sender().flush();
    long sum = 0;
    for (int left = BATCH; left > 0; left -= lane.batch.rowCount()) {
      Lane.check(lane.to.receiver().receive(lane.batch, Wait.NONE));
      for (int i = 0; i < lane.batch.rowCount(); i++) {
        sum += lane.batch.getLong(i * Long.BYTES);
      }
    }
    lane.batch.release();
    return sum;
  }

  /** Sent and received as arrays. */
  @Benchmark
  @OperationsPerInvocation(BATCH)
  public long manyLongs(Longs lane) {
    lane.sender.sendAll(lane.rows, 0, BATCH, Partition.FINALIZER, Wait.NONE);
    Lane.check(lane.sender.stoppedBy());
    lane.from.sender().flush();
    for (int left = BATCH; left > 0; left -= lane.batch.rowCount()) {
      Lane.check(lane.to.receiver().receive(lane.batch, Wait.NONE));
      lane.batch.getLongs(0, lane.rows, 0, lane.batch.rowCount());
    }
    lane.batch.release();
    return lane.rows[0];
  }

  /** Rows of 100 bytes. */
  @State(Scope.Thread)
  public static class Records extends Lane {
    final Shuffle from = sender(RECORD_BYTES);
    final Shuffle to = receiver(RECORD_BYTES);
    final RowWriter writer = from.sender().rows();
    final Batch batch = to.receiver().newBatch();
    final byte[] record = new byte[RECORD_BYTES];
  }

  /** Claimed, written, committed; stepped to and copied out. */
  @Benchmark
  @OperationsPerInvocation(BATCH)
  public byte recordOf100Bytes(Records lane) {
    for (int i = 0; i < BATCH; i++) {
      Lane.check(lane.writer.claim(0, RECORD_BYTES, Wait.NONE));
      lane.writer.putBytes(0, lane.record, 0, RECORD_BYTES);
      lane.writer.commit(RECORD_BYTES);
    }
    lane.from.sender().flush();
    for (int left = BATCH; left > 0; left -= lane.batch.rowCount()) {
      Lane.check(lane.to.receiver().receive(lane.batch, Wait.NONE));
      while (lane.batch.nextRow()) {
        lane.batch.getBytes(lane.batch.rowOffset(), lane.record, 0, RECORD_BYTES);
      }
    }
    lane.batch.release();
    return lane.record[0];
  }

  /** Rows of a schema. */
  @State(Scope.Thread)
  public static class Objects extends Lane {
    final SchemaCodec codec = Codec.ofFiveColumns();
    final Shuffle from = sender(0);
    final Shuffle to = receiver(0);
    final ObjectSender<Object[]> sender = from.sender().objects(codec);
    final ObjectReceiver<Object[]> receiver = to.receiver().objects(codec);
    final Object[] row = {1L, 2, new BigDecimal("1234.56"), 0.5, "a string of some length"};
  }

  /** By its codec. */
  @Benchmark
  @OperationsPerInvocation(BATCH)
  public Object objectRow(Objects lane) {
    for (int i = 0; i < BATCH; i++) {
      Lane.check(lane.sender.send(0, lane.row, Wait.NONE));
    }
    lane.from.sender().flush();
    for (int i = 0; i < BATCH; i++) {
      Lane.check(lane.receiver.next(Wait.NONE));
    }
    Object row = lane.receiver.get();
    lane.receiver.next(Wait.NONE); // there is none: gives the batch back
    return row;
  }
}
