package io.faro.peers;

import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.logbuffer.BufferClaim;
import io.aeron.logbuffer.FragmentHandler;
import io.faro.Outcome;
import io.faro.Partition;
import io.faro.bench.RowPort;
import io.faro.bench.TwoStageJob;
import java.nio.ByteOrder;
import java.util.ArrayDeque;
import java.util.Arrays;
import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;

/**
 * A worker's end of one stage. Rows gather in arrays and are copied into frames of up to 16 KiB that
 * are claimed, which is faster than to write them there one by one; what the worker sends to itself
 * stays in its own memory.
 *
 * <pre>
 *   0          8              8 + 8 * rows
 *   +----------+------ … -----+
 *   |   rows   |     row …    |     no rows: the sender's end of the stage
 *   +----------+------ … -----+
 * </pre>
 *
 * Threads: the worker's.
 */
final class AeronPort extends RowPort {
  private static final int FRAME = 16 * 1024;
  private static final int ROWS = FRAME / Long.BYTES - 1;
  private static final int OWN_FRAMES = 4;

  private final TwoStageJob job;
  private final int stage;
  private final int self;
  private final int workerCount;
  private final Aeron aeron;
  private final AeronChannels channels;
  private final Subscription subscription;
  private final FragmentHandler handler = (buffer, offset, length, header) -> take(buffer, offset);
  private final ExclusivePublication[] publications;
  private final BufferClaim[] claims;
  private final long[][] open; // frames that are being filled, by receiver
  private final int[] rows; // in each of them
  private final ArrayDeque<long[]> own = new ArrayDeque<>();
  private final int[] receivers = new int[FRAME / Long.BYTES];
  private int ended; // receivers that have been told
  private int ends; // senders that have ended

  AeronPort(TwoStageJob job, int stage, int self, Aeron aeron, AeronChannels channels) {
    this.job = job;
    this.stage = stage;
    this.self = self;
    this.aeron = aeron;
    this.channels = channels;
    workerCount = job.workerCount();
    publications = new ExclusivePublication[workerCount];
    claims = new BufferClaim[workerCount];
    open = new long[workerCount][ROWS];
    rows = new int[workerCount];
    subscription = aeron.addSubscription(channels.to(self), stream(self));
  }

  private int stream(int receiver) {
    return 1 + stage * workerCount + receiver;
  }

  /** All workers have made their ports. */
  void connect() {
    for (int to = 0; to < workerCount; to++) {
      if (to != self) {
        publications[to] = aeron.addExclusivePublication(channels.to(to), stream(to));
        claims[to] = new BufferClaim();
      }
    }
  }

  boolean isConnected() {
    for (ExclusivePublication publication : publications) {
      if (publication != null && !publication.isConnected()) {
        return false;
      }
    }
    return subscription.imageCount() == workerCount - 1;
  }

  /** A round begins. */
  void begin() {
    ended = ends = 0;
  }

  @Override
  protected int trySend(long[] from, int begin, int end) {
    Partition partition = job.partition();
    for (int i = begin; i < end; i++) {
      receivers[i - begin] = partition.receiverOf(from[i], workerCount);
    }
    for (int at = begin; at < end; at++) {
      int to = receivers[at - begin];
      if (rows[to] == ROWS && !close(to)) {
        return at - begin;
      }
      open[to][rows[to]++] = from[at];
    }
    return end - begin;
  }

  /** Sends the open frame, if there are rows in it; false while there is no room. */
  private boolean close(int to) {
    if (rows[to] == 0) {
      return true;
    }
    if (to == self) {
      return closeOwn();
    }
    if (!claim(to, Long.BYTES * (1 + rows[to]))) {
      return false;
    }
    BufferClaim claim = claims[to];
    MutableDirectBuffer buffer = claim.buffer();
    int offset = claim.offset();
    long[] frame = open[to];
    buffer.putLong(offset, rows[to], ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < rows[to]; i++) {
      buffer.putLong(offset + Long.BYTES * (1 + i), frame[i], ByteOrder.LITTLE_ENDIAN);
    }
    claim.commit();
    rows[to] = 0;
    return true;
  }

  private boolean claim(int to, int bytes) {
    long position = publications[to].tryClaim(bytes, claims[to]);
    if (position == Publication.CLOSED || position == Publication.NOT_CONNECTED) {
      throw new IllegalStateException("a node of the benchmark has died");
    }
    return position > 0;
  }

  private boolean closeOwn() {
    if (own.size() >= OWN_FRAMES) {
      return false;
    }
    own.add(rows[self] == ROWS ? open[self] : Arrays.copyOf(open[self], rows[self]));
    open[self] = new long[ROWS];
    rows[self] = 0;
    return true;
  }

  @Override
  protected Outcome tryReceive() {
    long[] frame = own.poll();
    if (frame != null) {
      System.arraycopy(frame, 0, begin(frame.length), 0, frame.length);
      return Outcome.DONE;
    }
    begin(0);
    if (subscription.poll(handler, 1) > 0 && count() > 0) {
      return Outcome.DONE;
    }
    boolean over = ends == workerCount - 1 && ended == workerCount && own.isEmpty();
    return over ? Outcome.END_OF_STREAM : Outcome.WOULD_WAIT;
  }

  private void take(DirectBuffer buffer, int offset) {
    int rows = (int) buffer.getLong(offset, ByteOrder.LITTLE_ENDIAN);
    if (rows == 0) {
      ends++;
      return;
    }
    long[] to = begin(rows);
    for (int i = 0; i < rows; i++) {
      to[i] = buffer.getLong(offset + Long.BYTES * (1 + i), ByteOrder.LITTLE_ENDIAN);
    }
  }

  /** Tells one receiver after the other. */
  Outcome tryFinish() {
    for (; ended < workerCount; ended++) {
      if (ended == self) {
        if (!close(self)) {
          return Outcome.WOULD_WAIT;
        }
        continue;
      }
      if (!close(ended) || !claim(ended, Long.BYTES)) {
        return Outcome.WOULD_WAIT;
      }
      claims[ended].buffer().putLong(claims[ended].offset(), 0);
      claims[ended].commit();
    }
    return Outcome.DONE;
  }
}
