package io.faro.bench;

import java.nio.channels.Selector;
import java.util.Arrays;
import java.util.Queue;

/** To another worker of the same process: blocks of rows, stage in front; a block of none ends it. */
final class NioLocalPeer implements NioPeer {
  private static final int BLOCK = 1024;

  private final Queue<long[]> lane;
  private final Selector receiver;
  private final long[][] open = new long[3][1 + BLOCK]; // by stage
  private final int[] used = {1, 1, 1};

  NioLocalPeer(Queue<long[]> lane, Selector receiver) {
    this.lane = lane;
    this.receiver = receiver;
  }

  @Override
  public boolean put(int stage, long n) {
    open[stage][used[stage]++] = n;
    if (used[stage] == open[stage].length) {
      hand(stage);
    }
    return true;
  }

  @Override
  public boolean hasRoom() {
    return true;
  }

  @Override
  public void putEnd(int stage) {
    flush();
    lane.add(new long[] {stage});
    receiver.wakeup();
  }

  @Override
  public boolean flush() {
    for (int stage = 1; stage <= 2; stage++) {
      if (used[stage] > 1) {
        hand(stage);
      }
    }
    return true;
  }

  private void hand(int stage) {
    open[stage][0] = stage;
    lane.add(Arrays.copyOf(open[stage], used[stage]));
    used[stage] = 1;
    receiver.wakeup();
  }

  @Override
  public void watchWritable() {}

  @Override
  public void close() {}
}
