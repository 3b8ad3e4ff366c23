package io.faro.bench;

import io.faro.Outcome;
import java.util.Arrays;

/**
 * A worker's end of one shuffle: sends from arrays, receives into one.
 *
 * <p>Threads: the worker's.
 */
public abstract class RowPort {
  private static final int BLOCK = 2048;

  private long[] rows = new long[BLOCK];
  private int count;

  /** Nothing was received yet. */
  protected RowPort() {}

  /** Sends rows[from … to-1] to the receivers of their hashes; how many were taken. */
  protected abstract int trySend(long[] from, int begin, int end);

  /** Puts what has come into {@link #rows}; the outcome if nothing has. Holds no frame afterwards. */
  protected abstract Outcome tryReceive();

  /** What {@link #tryReceive} found, from index 0 on. */
  protected final long[] rows() {
    return rows;
  }

  protected final int count() {
    return count;
  }

  /** Space for as many; what was received before is gone. */
  protected final long[] begin(int count) {
    if (count > rows.length) {
      rows = new long[count];
    }
    this.count = count;
    return rows;
  }

  /** Takes the first rows of an array, which is kept; gives another one in exchange. */
  protected final long[] exchange(long[] received, int count) {
    long[] before = rows;
    rows = received;
    this.count = count;
    return before;
  }

  final void clear() {
    count = 0;
  }

  final void add(long row) {
    if (count == rows.length) {
      rows = Arrays.copyOf(rows, 2 * count);
    }
    rows[count++] = row;
  }
}
