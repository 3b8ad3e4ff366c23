package io.faro.bench;

import java.util.Arrays;

/** A queue of longs that grows. */
final class LongQueue {
  private long[] values = new long[8192];
  private int begin;
  private int end;

  boolean isEmpty() {
    return begin == end;
  }

  void add(long value) {
    if (end == values.length) {
      makeRoom();
    }
    values[end++] = value;
  }

  long first() {
    return values[begin];
  }

  void removeFirst() {
    if (++begin == end) {
      begin = end = 0;
    }
  }

  private void makeRoom() {
    long[] to = begin > values.length / 2 ? values : Arrays.copyOf(values, 2 * values.length);
    System.arraycopy(values, begin, to, 0, end - begin);
    end -= begin;
    begin = 0;
    values = to;
  }
}
