package io.faro.sockets;

import io.faro.RowBuffer;
import io.faro.RowCodec;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.function.BooleanSupplier;

/**
 * A worker as its sockets see it. While it waits, for room or for rows, it takes all that comes in, of any stage: so no
 * plan comes to a standstill.
 *
 * <p>Threads: one at a time, except for {@link #wakeIfItSleeps}.
 */
public final class SocketsWorker implements AutoCloseable {
  private static final int SCRATCH_BYTES = 4096; // grows

  private final int number;
  private final SocketsSettings settings;
  private final Selector selector;
  private final Peer[] peers; // by number; null: itself
  private final List<LocalLane> incoming = new ArrayList<>(); // from other workers of the process
  private Peer[] others = {}; // peers without itself
  private ByteBuffer scratch = Connection.allocate(SCRATCH_BYTES);
  private RowBuffer scratchRows = RowBuffer.over(scratch);
  private SocketsQuery query; // null: none runs
  private long checkedNanos;
  private volatile boolean sleeps;

  SocketsWorker(int number, SocketsSettings settings) throws IOException {
    this.number = number;
    this.settings = settings;
    peers = new Peer[settings.workerCount()];
    selector = Selector.open();
  }

  // --- before the first query

  /** Takes over the channel, which is non-blocking. */
  void connect(int peer, SocketChannel channel) throws IOException {
    connect(peer, new Connection(settings, peer, channel, selector));
  }

  /** Rows for another worker of this process. */
  void connect(SocketsWorker other) {
    LocalLane lane = new LocalLane(this, other);
    connect(other.number, new LocalPeer(lane));
    other.incoming.add(lane);
  }

  /** Any way to another worker. */
  public void connect(int number, Peer peer) {
    peers[number] = peer;
    others = Arrays.stream(peers).filter(Objects::nonNull).toArray(Peer[]::new);
  }

  boolean isConnected(int peer) {
    return peers[peer] != null;
  }

  // --- what it is

  /** In the whole cluster. */
  public int number() {
    return number;
  }

  /** The number of workers of the whole cluster. */
  public int workerCount() {
    return peers.length;
  }

  public SocketsSettings settings() {
    return settings;
  }

  /** Null for the worker itself. */
  public Peer peer(int number) {
    return peers[number];
  }

  /** To all other workers. */
  public Peer[] peers() {
    return others;
  }

  // --- a query

  /** What comes is for this one from now on. */
  public void begin(SocketsQuery query) {
    this.query = query;
    for (Peer peer : others) {
      peer.begin(query);
    }
  }

  /** Well or not. */
  public void end() {
    for (Peer peer : others) {
      peer.end();
    }
    scratchRows.releaseOwnership();
    query = null;
  }

  /** Writes a row that is for several; its bytes, which {@link #scratch} has until the next call. */
  public <T> int writeAside(RowCodec<T> codec, T row) {
    int bytes = scratchRows.tryWrite(codec, row, 0);
    if (bytes == RowBuffer.NO_ROOM) {
      scratch = Connection.allocate(codec.maxBytes(row));
      scratchRows = RowBuffer.over(scratch);
      bytes = scratchRows.tryWrite(codec, row, 0);
    }
    return bytes;
  }

  /** What {@link #writeAside} wrote. */
  public ByteBuffer scratch() {
    return scratch;
  }

  /** Sends what gathers; whether all of it has gone. */
  public boolean flush() {
    boolean all = true;
    for (Peer peer : others) {
      all &= peer.flush();
    }
    return all;
  }

  /** Takes what has come, without waiting; whether there was anything. */
  public boolean turn() {
    boolean moved = takeLocal();
    try {
      moved |= selector.selectNow(SocketsWorker::ready) > 0;
    } catch (IOException problem) {
      throw new UncheckedIOException(problem);
    }
    return moved;
  }

  private static void ready(SelectionKey key) {
    ((Connection) key.attachment()).ready();
  }

  private boolean takeLocal() {
    boolean moved = false;
    for (LocalLane lane : incoming) {
      while (!lane.isEmpty(query.number())) { // blocks of a query that has not begun here wait
        LocalLane.Block block = lane.peek();
        if (block.query() == query.number()) { // of one that has ended they are thrown away
          take(block);
        }
        lane.remove();
        moved = true;
      }
    }
    return moved;
  }

  private void take(LocalLane.Block block) {
    StageRows stage = query.rowsOf(block.stage());
    if (block.rows() == null) {
      stage.ended();
    } else {
      stage.take(block.rows());
    }
  }

  /**
   * Tries until it is done, waiting in between.
   *
   * @throws RuntimeException if the query fails
   */
  public void await(BooleanSupplier attempt) {
    int idle = 0;
    while (!attempt.getAsBoolean()) {
      if (turn()) {
        idle = 0;
      } else if (idle++ < settings.yields()) {
        flush();
        Thread.yield();
      } else if (sleep(attempt)) {
        return;
      }
    }
  }

  /** True if the attempt, made once more before sleeping, has done it. */
  private boolean sleep(BooleanSupplier attempt) {
    sleeps = true; // from now on lanes wake it; what was offered or taken before is seen below
    try {
      flush();
      for (Peer peer : others) {
        peer.wakeWhenRoom();
      }
      if (attempt.getAsBoolean()) {
        return true;
      }
      if (incoming.stream().allMatch(lane -> lane.isEmpty(query.number()))) {
        selector.select(SocketsWorker::ready, settings.checkMs());
      }
    } catch (IOException problem) {
      throw new UncheckedIOException(problem);
    } finally {
      sleeps = false;
    }
    if (System.nanoTime() - checkedNanos >= settings.checkMs() * 1_000_000L) {
      query.check();
      checkedNanos = System.nanoTime();
    }
    return false;
  }

  /** Threads: any. What it should see was published before. */
  void wakeIfItSleeps() {
    if (sleeps) {
      selector.wakeup();
    }
  }

  @Override
  public void close() {
    for (Peer peer : others) {
      peer.close();
    }
    try {
      selector.close();
    } catch (IOException problem) {
      // Its descriptors are gone nevertheless.
    }
  }
}
