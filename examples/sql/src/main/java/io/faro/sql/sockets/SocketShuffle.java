package io.faro.sql.sockets;

import io.faro.Delivery;
import io.faro.ObjectShuffleSpec;
import io.faro.Outcome;
import io.faro.RowBuffer;
import io.faro.RowCodec;
import io.faro.sockets.Peer;
import io.faro.sockets.SocketsWorker;
import io.faro.sockets.StageRows;
import io.faro.sql.exec.RowShuffle;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;

/** One worker's end of one exchange. Rows that have come are kept here, however many, until they are asked for. */
final class SocketShuffle implements RowShuffle, StageRows {
  private final SocketsWorker worker;
  private final int stage;
  private final RowCodec<Object[]> codec;
  private final boolean isBroadcast;
  private final ArrayDeque<Object[]> rows = new ArrayDeque<>();
  private int sendersLeft;
  private boolean isStopped;

  SocketShuffle(SocketsWorker worker, ObjectShuffleSpec<Object[]> opened) {
    this.worker = worker;
    stage = opened.spec().stage();
    codec = opened.codec();
    isBroadcast = opened.spec().delivery() == Delivery.REPLICATE;
    sendersLeft = worker.workerCount();
    worker.settings().checkedRow(stage, codec.rowBytes());
  }

  @Override
  public int receiverCount() {
    return isBroadcast ? 1 : worker.workerCount();
  }

  @Override
  public void send(int receiver, Object[] row) {
    if (isBroadcast) {
      broadcast(row);
      return;
    }
    if (receiver == worker.number()) {
      takeOwn(row);
      return;
    }
    Peer peer = worker.peer(receiver);
    if (!peer.tryPut(stage, codec, row)) {
      worker.await(() -> peer.tryPut(stage, codec, row));
    }
  }

  /** Written once, whoever gets it. */
  private void broadcast(Object[] row) {
    int bytes = worker.settings().checkedRow(stage, worker.writeAside(codec, row));
    takeOwn(row);
    for (Peer peer : worker.peers()) {
      if (!peer.tryPut(stage, codec, row, worker.scratch(), bytes)) {
        worker.await(() -> peer.tryPut(stage, codec, row, worker.scratch(), bytes));
      }
    }
  }

  @Override
  public void finish() {
    for (Peer peer : worker.peers()) {
      if (!peer.tryPutEnd(stage)) {
        worker.await(() -> peer.tryPutEnd(stage));
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

  @Override
  public void ended() {
    sendersLeft--;
  }

  private void takeOwn(Object[] row) {
    if (!isStopped) {
      rows.add(row);
    }
  }

  @Override
  public void take(Object block) {
    for (Object row : (Object[]) block) {
      takeOwn((Object[]) row);
    }
  }

  @Override
  public boolean take(ByteBuffer memory, RowBuffer from, int begin, int bytes) {
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
