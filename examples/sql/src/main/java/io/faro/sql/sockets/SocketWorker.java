package io.faro.sql.sockets;

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
 * A worker as its sockets see it. While it waits, for room or for rows, it takes all that comes in, of any exchange:
 * so no plan comes to a standstill.
 *
 * <p>Threads: one at a time, except for {@link #wakeIfItSleeps}.
 */
final class SocketWorker implements AutoCloseable {
  private static final int SCRATCH_BYTES = 4096; // grows

  private final int number;
  private final SocketSettings settings;
  private final Selector selector;
  private final Peer[] peers; // by number; null: itself
  private final List<LocalLane> incoming = new ArrayList<>(); // from other workers of the process
  private Peer[] others = {}; // peers without itself
  private ByteBuffer scratch = Connection.allocate(SCRATCH_BYTES);
  private RowBuffer scratchRows = RowBuffer.over(scratch);
  private SocketShuffles query; // null: none runs
  private long checkedNanos;
  private volatile boolean sleeps;

  /** {@code workers}: of the whole cluster. */
  SocketWorker(int number, int workers, SocketSettings settings) throws IOException {
    this.number = number;
    this.settings = settings;
    peers = new Peer[workers];
    selector = Selector.open();
  }

  // --- before the first query

  /** Takes over the channel, which is non-blocking. */
  void connect(int peer, SocketChannel channel) throws IOException {
    connect(peer, new Connection(this, peer, channel));
  }

  /** Rows for another worker of this process. */
  void connect(SocketWorker other) {
    LocalLane lane = new LocalLane(this, other);
    connect(other.number, new LocalPeer(lane));
    other.incoming.add(lane);
  }

  /** Any way to another worker. */
  void connect(int number, Peer peer) {
    peers[number] = peer;
    others = Arrays.stream(peers).filter(Objects::nonNull).toArray(Peer[]::new);
  }

  boolean isConnected(int peer) {
    return peers[peer] != null;
  }

  // --- what it is

  int number() {
    return number;
  }

  int workers() {
    return peers.length;
  }

  SocketSettings settings() {
    return settings;
  }

  Selector selector() {
    return selector;
  }

  Peer peer(int number) {
    return peers[number];
  }

  /** To all other workers. */
  Peer[] peers() {
    return others;
  }

  // --- a query

  void begin(SocketShuffles query) {
    this.query = query;
    for (Peer peer : others) {
      peer.begin(query);
    }
  }

  void end() {
    for (Peer peer : others) {
      peer.end();
    }
    scratchRows.releaseOwnership();
    query = null;
  }

  /** Writes a row that is for several; its bytes, which {@link #scratch} has until the next call. */
  int writeAside(RowCodec<Object[]> codec, Object[] row) {
    int bytes = scratchRows.tryWrite(codec, row, 0);
    if (bytes == RowBuffer.NO_ROOM) {
      scratch = Connection.allocate(codec.maxBytes(row));
      scratchRows = RowBuffer.over(scratch);
      bytes = scratchRows.tryWrite(codec, row, 0);
    }
    return bytes;
  }

  ByteBuffer scratch() {
    return scratch;
  }

  /** Sends what gathers; whether all of it has gone. */
  boolean flush() {
    boolean all = true;
    for (Peer peer : others) {
      all &= peer.flush();
    }
    return all;
  }

  /** Takes what has come, without waiting; whether there was anything. */
  boolean turn() {
    boolean moved = takeLocal();
    try {
      moved |= selector.selectNow(SocketWorker::ready) > 0;
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
          query.stageOf(block.stage()).take(block);
        }
        lane.remove();
        moved = true;
      }
    }
    return moved;
  }

  /**
   * Tries until it is done, waiting in between. Who waits sleeps at once, as over Faro in this engine: there may be
   * more workers than processors.
   *
   * @throws RuntimeException if the query fails
   */
  void await(BooleanSupplier attempt) {
    while (!attempt.getAsBoolean()) {
      if (!turn() && sleep(attempt)) {
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
        selector.select(SocketWorker::ready, settings.checkMs());
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
