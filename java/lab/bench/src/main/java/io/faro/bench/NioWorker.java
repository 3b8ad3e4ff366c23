package io.faro.bench;

import io.faro.Partition;
import java.io.IOException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;

/**
 * One worker of the paper's sockets middleware in Java NIO: the baseline. Workers do all I/O
 * themselves: they serialise rows into outgoing buffers, write these to non-blocking sockets, and
 * read what sockets hold into incoming buffers of 64 KiB. The order of polling is the paper's: rows
 * of the own process, then sockets, then rows of the child. Rows of other workers of the process go
 * through bounded lanes in blocks, the worker's own are handled directly.
 *
 * <p>In the tuned form rows gather in outgoing buffers of 16 KiB; in the paper's each row is written
 * at once.
 */
final class NioWorker implements RoundWorker {
  private static final int BLOCK = 2048;
  private static final int YIELDS = 4;

  private final TwoStageJob job;
  private final int number;
  private final boolean writesEachRow;
  private final Partition partition;
  private final int workerCount;
  private final NioPeer[] peers; // by worker; null: this one
  private final List<NioLane> incoming = new ArrayList<>(); // from other workers of the process
  private final Selector selector;
  private final int[] receivers = new int[BLOCK];

  private final long[] generated = new long[BLOCK];
  private int generatedBegin;
  private int generatedEnd;
  private final LongQueue forwards = new LongQueue(); // transformed rows for stage 2
  private long next;
  private long end;
  private int ends1; // workers that have ended the stage
  private int ends2;
  private boolean finished1;
  private boolean finished2;
  private long count;
  private long checksum;

  NioWorker(TwoStageJob job, int number, boolean writesEachRow) throws IOException {
    this.job = job;
    this.number = number;
    this.writesEachRow = writesEachRow;
    partition = job.partition();
    workerCount = job.workerCount();
    peers = new NioPeer[workerCount];
    selector = Selector.open();
  }

  int number() {
    return number;
  }

  void connect(int peer, SocketChannel channel) throws IOException {
    NioSocketPeer made = new NioSocketPeer(channel, writesEachRow);
    made.key = channel.register(selector, SelectionKey.OP_READ, made);
    peers[peer] = made;
  }

  /** Rows for another worker of this process. */
  void connectLocal(NioWorker other) {
    NioLane lane = new NioLane(selector, other.selector);
    peers[other.number] = new NioLocalPeer(lane);
    other.incoming.add(lane);
  }

  @Override
  public void run(Round round) throws IOException {
    next = job.rangeBegin(number);
    end = job.rangeEnd(number);
    generatedBegin = generatedEnd = 0;
    ends1 = ends2 = 0;
    finished1 = finished2 = false;
    count = checksum = 0;
    int idle = 0;
    while (!(finished2 && ends2 == workerCount && flush())) {
      if (turn()) {
        idle = 0;
      } else if (idle++ < YIELDS) {
        flush();
        Thread.yield();
      } else {
        sleep();
      }
    }
  }

  @Override
  public long count() {
    return count;
  }

  @Override
  public long checksum() {
    return checksum;
  }

  private boolean turn() throws IOException {
    boolean moved = takeLocal();
    moved |= selector.selectNow(this::ready) > 0;
    moved |= forward();
    if (!moved) {
      moved = generate();
    }
    return finish() || moved;
  }

  private void sleep() throws IOException {
    flush();
    for (NioPeer peer : peers) {
      if (peer != null) {
        peer.watchWritable();
      }
    }
    for (NioLane lane : incoming) {
      if (!lane.isEmpty()) {
        return;
      }
    }
    selector.select(this::ready);
  }

  private void ready(SelectionKey key) {
    ((NioSocketPeer) key.attachment()).ready(this);
  }

  private boolean takeLocal() {
    boolean moved = false;
    for (NioLane lane : incoming) {
      for (long[] block = lane.poll(); block != null; block = lane.poll()) {
        int stage = (int) block[0];
        for (int i = 1; i < block.length; i++) {
          arrived(stage, block[i]);
        }
        if (block.length == 1) {
          ended(stage);
        }
        moved = true;
      }
    }
    return moved;
  }

  /** A row has arrived, over a socket, from a sibling, or from this worker itself. */
  void arrived(int stage, long n) {
    if (stage == 1) {
      forwards.add(TwoStageJob.transform(n));
    } else {
      checksum += TwoStageJob.mix(n);
      count++;
    }
  }

  void ended(int stage) {
    if (stage == 1) {
      ends1++;
    } else {
      ends2++;
    }
  }

  private boolean forward() {
    boolean moved = false;
    while (!forwards.isEmpty()) {
      long n = forwards.first();
      int to = partition.receiverOf(n, workerCount);
      if (to == number) {
        arrived(2, n);
      } else if (!peers[to].put(2, n)) {
        return moved;
      }
      forwards.removeFirst();
      moved = true;
    }
    return moved;
  }

  private boolean generate() {
    if (!forwards.isEmpty()) {
      return false; // the child has to wait for what cannot be sent
    }
    if (generatedBegin == generatedEnd) {
      int rows = (int) Math.min(BLOCK, end - next);
      if (rows == 0) {
        return false;
      }
      TwoStageJob.generate(next, generated, rows);
      for (int i = 0; i < rows; i++) {
        receivers[i] = partition.receiverOf(generated[i], workerCount);
      }
      next += rows;
      generatedBegin = 0;
      generatedEnd = rows;
    }
    int begin = generatedBegin;
    while (generatedBegin < generatedEnd) {
      int to = receivers[generatedBegin];
      if (to == number) {
        arrived(1, generated[generatedBegin]);
      } else if (!peers[to].put(1, generated[generatedBegin])) {
        break;
      }
      generatedBegin++;
    }
    return generatedBegin > begin;
  }

  private boolean finish() {
    if (!finished1 && next == end && generatedBegin == generatedEnd && end(1)) {
      finished1 = true;
      return true;
    }
    if (finished1 && !finished2 && ends1 == workerCount && forwards.isEmpty() && end(2)) {
      finished2 = true;
      return true;
    }
    return false;
  }

  /** Tells everybody, or nobody if there is no room. */
  private boolean end(int stage) {
    for (NioPeer peer : peers) {
      if (peer != null && !peer.hasRoom()) {
        return false;
      }
    }
    for (NioPeer peer : peers) {
      if (peer != null) {
        peer.putEnd(stage);
      }
    }
    ended(stage);
    return true;
  }

  /** Whether everything was written. */
  private boolean flush() {
    boolean all = true;
    for (NioPeer peer : peers) {
      if (peer != null) {
        all &= peer.flush();
      }
    }
    return all;
  }

  void close() throws IOException {
    for (NioPeer peer : peers) {
      if (peer != null) {
        peer.close();
      }
    }
    selector.close();
  }
}
