package io.faro.bench;

import java.util.Arrays;

/** To another worker of the same process: blocks of rows, stage in front; a block of none ends it. */
final class NioLocalPeer implements NioPeer {
  private static final int BLOCK = 1024;
  private static final int STAGES = 2;

  private final NioLane lane;
  private final long[][] open = new long[1 + STAGES][1 + BLOCK]; // by stage
  private final int[] used = {1, 1, 1};

  NioLocalPeer(NioLane lane) {
    this.lane = lane;
  }

  @Override
  public boolean put(int stage, long n) {
    if (used[stage] == open[stage].length && !hand(stage)) {
      return false;
    }
    open[stage][used[stage]++] = n;
    return true;
  }

  /** For an end, with what must go before it. */
  @Override
  public boolean hasRoom() {
    return lane.hasRoom(STAGES + 1);
  }

  @Override
  public void putEnd(int stage) {
    flush();
    lane.offer(new long[] {stage});
  }

  @Override
  public boolean flush() {
    boolean all = true;
    for (int stage = 1; stage <= STAGES; stage++) {
      all &= used[stage] == 1 || hand(stage);
    }
    return all;
  }

  private boolean hand(int stage) {
    if (!lane.hasRoom(1)) {
      return false;
    }
    open[stage][0] = stage;
    lane.offer(Arrays.copyOf(open[stage], used[stage]));
    used[stage] = 1;
    return true;
  }

  @Override
  public void watchWritable() {}

  @Override
  public void close() {}
}
