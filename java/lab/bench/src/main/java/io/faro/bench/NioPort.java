package io.faro.bench;

import io.faro.Outcome;
import io.faro.Partition;
import io.faro.RowBuffer;
import io.faro.sockets.Peer;
import io.faro.sockets.SocketsWorker;
import io.faro.sockets.StageRows;
import java.nio.ByteBuffer;
import java.util.Arrays;

/** A worker's end of one stage over sockets. Rows that have come are kept, however many, until they are asked for. */
final class NioPort extends RowPort implements StageRows {
  private final Partition partition;
  private final int stage;
  private final SocketsWorker sockets;
  private long[] arrived = new long[8192];
  private int arrivedCount;
  private int sendersLeft;
  private int told; // of the other workers, that this one sends no more

  NioPort(TwoStageJob job, int stage, SocketsWorker sockets) {
    partition = job.partition();
    this.stage = stage;
    this.sockets = sockets;
  }

  void begin() {
    arrivedCount = told = 0;
    sendersLeft = sockets.workerCount();
  }

  @Override
  protected int trySend(long[] from, int begin, int end) {
    int workers = sockets.workerCount();
    for (int i = begin; i < end; i++) {
      Peer peer = sockets.peer(partition.receiverOf(from[i], workers));
      if (peer == null) {
        makeSpace(1);
        arrived[arrivedCount++] = from[i];
      } else if (!peer.tryPut(stage, from[i])) {
        return i - begin;
      }
    }
    return end - begin;
  }

  Outcome tryFinish() {
    for (Peer[] others = sockets.peers(); told < others.length; told++) {
      if (!others[told].tryPutEnd(stage)) {
        return Outcome.WOULD_WAIT;
      }
    }
    ended();
    return Outcome.DONE;
  }

  @Override
  protected Outcome tryReceive() {
    if (arrivedCount == 0) {
      return sendersLeft == 0 ? Outcome.END_OF_STREAM : Outcome.WOULD_WAIT;
    }
    arrived = exchange(arrived, arrivedCount);
    arrivedCount = 0;
    return Outcome.DONE;
  }

  // --- what comes

  @Override
  public boolean take(ByteBuffer memory, RowBuffer rows, int begin, int bytes) {
    int count = bytes / Long.BYTES;
    makeSpace(count);
    memory.slice(begin, bytes).order(memory.order()).asLongBuffer().get(arrived, arrivedCount, count);
    arrivedCount += count;
    return bytes % Long.BYTES == 0;
  }

  @Override
  public void take(Object rows) {
    long[] block = (long[]) rows;
    makeSpace(block.length);
    System.arraycopy(block, 0, arrived, arrivedCount, block.length);
    arrivedCount += block.length;
  }

  @Override
  public void ended() {
    sendersLeft--;
  }

  private void makeSpace(int count) {
    if (count > arrived.length - arrivedCount) {
      arrived = Arrays.copyOf(arrived, 2 * arrived.length + count);
    }
  }
}
