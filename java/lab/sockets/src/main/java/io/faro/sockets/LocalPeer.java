package io.faro.sockets;

import io.faro.RowCodec;
import java.nio.ByteBuffer;
import java.util.Arrays;

/** To another worker of the same process: rows go as they are, in blocks of one stage. */
final class LocalPeer implements Peer {
  private static final int LONGS = 1024; // of a block: 16 of them are about what a socket buffers
  private static final int OBJECTS = 256; // of a block

  private final LocalLane lane;
  private long query;
  private Object[] open = {}; // by stage: long[] or Object[]; null: none
  private int[] counts = {}; // rows in them

  LocalPeer(LocalLane lane) {
    this.lane = lane;
  }

  @Override
  public void begin(SocketsQuery query) {
    this.query = query.number();
    open = new Object[query.stages()];
    counts = new int[query.stages()];
  }

  @Override
  public void end() {
    open = new Object[0];
    counts = new int[0];
  }

  @Override
  public boolean tryPut(int stage, long row) {
    if (counts[stage] == LONGS && !hand(stage, open[stage])) {
      return false;
    }
    if (open[stage] == null) {
      open[stage] = new long[LONGS];
    }
    ((long[]) open[stage])[counts[stage]++] = row;
    return true;
  }

  @Override
  public <T> boolean tryPut(int stage, RowCodec<T> codec, T row) {
    if (counts[stage] == OBJECTS && !hand(stage, open[stage])) {
      return false;
    }
    if (open[stage] == null) {
      open[stage] = new Object[OBJECTS];
    }
    ((Object[]) open[stage])[counts[stage]++] = row;
    return true;
  }

  @Override
  public <T> boolean tryPut(int stage, RowCodec<T> codec, T row, ByteBuffer written, int bytes) {
    return tryPut(stage, codec, row);
  }

  @Override
  public boolean tryPutEnd(int stage) {
    return handAll(stage) && lane.offer(new LocalLane.Block(query, stage, null));
  }

  @Override
  public boolean flush() {
    boolean all = true;
    for (int stage = 0; stage < counts.length; stage++) {
      all &= handAll(stage);
    }
    return all;
  }

  private boolean handAll(int stage) {
    int count = counts[stage];
    if (count == 0) {
      return true;
    }
    Object rows = open[stage];
    return hand(stage, rows instanceof long[] longs ? Arrays.copyOf(longs, count) : Arrays.copyOf((Object[]) rows, count));
  }

  private boolean hand(int stage, Object rows) {
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
