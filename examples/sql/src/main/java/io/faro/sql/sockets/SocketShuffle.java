package io.faro.sql.sockets;

import io.faro.Outcome;
import io.faro.RowBuffer;
import io.faro.RowCodec;
import io.faro.sql.exec.RowShuffle;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Arrays;

/** One worker's end of one exchange. Rows that have come are kept here, however many, until they are asked for. */
final class SocketShuffle implements RowShuffle {
  private final SocketShuffles query;
  private final SocketWorker worker;
  private final int stage;
  private final RowCodec<Object[]> codec;
  private final ArrayDeque<Object[]> rows = new ArrayDeque<>();
  private int sendersLeft;
  private boolean isStopped;

  SocketShuffle(SocketShuffles query, SocketWorker worker, int stage, RowCodec<Object[]> codec) {
    this.query = query;
    this.worker = worker;
    this.stage = stage;
    this.codec = codec;
    sendersLeft = worker.workers();
    checkedLimit(codec.rowBytes());
  }

  SocketShuffles query() {
    return query;
  }

  int stage() {
    return stage;
  }

  RowCodec<Object[]> codec() {
    return codec;
  }

  /** The bytes of a row, unless it is too large: then as with Faro an error. */
  int checkedLimit(int bytes) {
    int limit = worker.settings().rowLimitBytes();
    if (bytes > limit) {
      throw new IllegalArgumentException(
          "stage " + stage + ": a row of " + bytes + " bytes is above row.limit_bytes = " + limit);
    }
    return bytes;
  }

  @Override
  public int receiverCount() {
    return worker.workers();
  }

  @Override
  public void send(int receiver, Object[] row) {
    if (receiver == worker.number()) {
      take(row);
      return;
    }
    Peer peer = worker.peer(receiver);
    if (!peer.tryPut(this, row)) {
      worker.await(() -> peer.tryPut(this, row));
    }
  }

  /** Written once, whoever gets it. */
  @Override
  public void broadcast(Object[] row) {
    int bytes = checkedLimit(worker.writeAside(codec, row));
    take(row);
    for (Peer peer : worker.peers()) {
      if (!peer.tryPut(this, row, worker.scratch(), bytes)) {
        worker.await(() -> peer.tryPut(this, row, worker.scratch(), bytes));
      }
    }
  }

  @Override
  public void finish() {
    for (Peer peer : worker.peers()) {
      if (!peer.tryPutEnd(this)) {
        worker.await(() -> peer.tryPutEnd(this));
      }
    }
    ended();
    worker.flush();
  }

  @Override
  public void stop() {
    isStopped = true;
    rows.clear();
  }

  @Override
  public Outcome tryNext() {
    if (rows.isEmpty()) {
      worker.turn();
    }
    return look();
  }

  @Override
  public Outcome next() {
    if (look() == Outcome.WOULD_WAIT) {
      worker.await(() -> look() != Outcome.WOULD_WAIT);
    }
    return look();
  }

  private Outcome look() {
    if (!rows.isEmpty()) {
      return Outcome.DONE;
    }
    return isStopped || sendersLeft == 0 ? Outcome.END_OF_STREAM : Outcome.WOULD_WAIT;
  }

  @Override
  public Object[] get() {
    return rows.remove();
  }

  /** All senders have. */
  boolean hasEnded() {
    return sendersLeft == 0;
  }

  // --- what has come

  void ended() {
    sendersLeft--;
  }

  void take(Object[] row) {
    if (!isStopped) {
      rows.add(row);
    }
  }

  /** What came over a lane. */
  void take(LocalLane.Block block) {
    if (block.rows() == null) {
      ended();
    } else if (!isStopped) {
      rows.addAll(Arrays.asList(block.rows()));
    }
  }

  /** The rows of a frame; false if it ends within one. */
  boolean take(ByteBuffer memory, RowBuffer from, int begin, int bytes) {
    int end = begin + bytes;
    int at = begin;
    while (at < end) {
      int length = codec.rowBytes();
      if (length == 0) {
        if (end - at < Integer.BYTES) {
          return false;
        }
        length = memory.getInt(at);
        at += Integer.BYTES;
      }
      if (length < 0 || length > end - at) {
        return false;
      }
      if (!isStopped) {
        rows.add(from.read(codec, at, length));
      }
      at += length;
    }
    return true;
  }
}
