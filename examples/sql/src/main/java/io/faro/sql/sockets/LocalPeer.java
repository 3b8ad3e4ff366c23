package io.faro.sql.sockets;

import java.nio.ByteBuffer;
import java.util.Arrays;

/** To another worker of the same process: rows go as they are, in blocks of one stage. */
final class LocalPeer implements Peer {
  private static final int ROWS = 256;

  private final LocalLane lane;
  private long query;
  private Object[][][] open = {}; // by stage; null: none
  private int[] counts = {}; // rows in them

  LocalPeer(LocalLane lane) {
    this.lane = lane;
  }

  @Override
  public void begin(SocketShuffles query) {
    this.query = query.number();
    open = new Object[query.stages()][][];
    counts = new int[query.stages()];
  }

  @Override
  public void end() {
    open = new Object[0][][];
    counts = new int[0];
  }

  @Override
  public boolean tryPut(SocketShuffle shuffle, Object[] row) {
    int stage = shuffle.stage();
    if (counts[stage] == ROWS && !hand(stage)) {
      return false;
    }
    if (open[stage] == null) {
      open[stage] = new Object[ROWS][];
    }
    open[stage][counts[stage]++] = row;
    return true;
  }

  @Override
  public boolean tryPut(SocketShuffle shuffle, Object[] row, ByteBuffer written, int bytes) {
    return tryPut(shuffle, row);
  }

  @Override
  public boolean tryPutEnd(SocketShuffle shuffle) {
    return (counts[shuffle.stage()] == 0 || hand(shuffle.stage()))
        && lane.offer(new LocalLane.Block(query, shuffle.stage(), null));
  }

  @Override
  public boolean flush() {
    boolean all = true;
    for (int stage = 0; stage < counts.length; stage++) {
      all &= counts[stage] == 0 || hand(stage);
    }
    return all;
  }

  private boolean hand(int stage) {
    Object[][] rows = open[stage];
    if (counts[stage] < ROWS) {
      rows = Arrays.copyOf(rows, counts[stage]);
    }
    if (!lane.offer(new LocalLane.Block(query, stage, rows))) {
      return false;
    }
    open[stage] = null;
    counts[stage] = 0;
    return true;
  }

  @Override
  public void wakeWhenRoom() {
    // The lane's receiver does.
  }

  @Override
  public void close() {}
}
