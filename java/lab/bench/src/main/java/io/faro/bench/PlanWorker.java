package io.faro.bench;

import io.faro.Outcome;

/**
 * One worker of the two-stage job, whatever carries its rows, as {@code
 * native/lab/bench/two_stage_worker.h}: the paper's polling process. No step waits; the worker waits, in
 * one place and for anything at all, only if no step could move a row.
 */
public abstract class PlanWorker implements RoundWorker {
  private static final int BLOCK = 2048; // rows between two looks at what has arrived

  private final TwoStageJob job;
  private final int number;

  private RowPort port1;
  private RowPort port2;

  private final long[] generated = new long[BLOCK]; // not yet sent: [generatedBegin, generatedEnd)
  private int generatedBegin;
  private int generatedEnd;
  private int forwardBegin; // received, transformed, not yet sent: of the rows in port1
  private int forwardEnd;
  private long next; // still to be generated: [next, end)
  private long end;
  private boolean finished1; // this worker has said that it sends no more
  private boolean finished2;
  private boolean ended1; // nobody sends it any more
  private boolean ended2;
  private long count;
  private long checksum;

  /** Worker {@code number} of the cluster. */
  protected PlanWorker(TwoStageJob job, int number) {
    this.job = job;
    this.number = number;
  }

  @Override
  public final long count() {
    return count;
  }

  @Override
  public final long checksum() {
    return checksum;
  }

  /** A round begins, with these ends of its stages. */
  protected final void begin(RowPort stage1, RowPort stage2) {
    port1 = stage1;
    port2 = stage2;
    next = job.rangeBegin(number);
    end = job.rangeEnd(number);
    generatedBegin = generatedEnd = forwardBegin = forwardEnd = 0;
    finished1 = finished2 = ended1 = ended2 = false;
    count = checksum = 0;
  }

  /** Everything is sent and received. */
  protected final boolean over() {
    return finished2 && ended2;
  }

  /** Does what can be done without waiting; false if that was nothing. */
  protected final boolean turn() {
    boolean moved = consume();
    moved |= forward();
    if (!moved) {
      moved = generate();
    }
    moved |= finish();
    return moved || over();
  }

  /** Rows of stage 2 into the sink, as many as are there. */
  private boolean consume() {
    boolean moved = false;
    while (!ended2) {
      Outcome outcome = port2.tryReceive();
      if (outcome != Outcome.DONE) {
        ended2 = outcome == Outcome.END_OF_STREAM;
        return moved || ended2;
      }
      checksum += TwoStageJob.sumOfMix(port2.rows(), port2.count());
      count += port2.count();
      moved = true;
    }
    return moved;
  }

  /**
   * Rows of stage 1 to stage 2, until there are none or one finds no room; true if some were taken. Their frame is given
   * back before they are sent.
   */
  private boolean forward() {
    boolean moved = false;
    do {
      if (forwardBegin == forwardEnd) {
        if (ended1) {
          return moved;
        }
        Outcome outcome = port1.tryReceive();
        if (outcome != Outcome.DONE) {
          ended1 = outcome == Outcome.END_OF_STREAM;
          return moved || ended1;
        }
        TwoStageJob.transformAll(port1.rows(), port1.count());
        forwardBegin = 0;
        forwardEnd = port1.count();
        moved = true;
      }
      int taken = port2.trySend(port1.rows(), forwardBegin, forwardEnd);
      forwardBegin += taken;
      moved |= taken > 0;
    } while (forwardBegin == forwardEnd);
    return moved;
  }

  /** A block of rows of the child to stage 1. */
  private boolean generate() {
    if (generatedBegin == generatedEnd) {
      int rows = (int) Math.min(BLOCK, end - next);
      if (rows == 0) {
        return false;
      }
      TwoStageJob.generate(next, generated, rows);
      next += rows;
      generatedBegin = 0;
      generatedEnd = rows;
    }
    int taken = port1.trySend(generated, generatedBegin, generatedEnd);
    generatedBegin += taken;
    return taken > 0;
  }

  /** Tells all receivers that no more rows of a stage (1, 2) come from here. */
  protected abstract Outcome tryFinish(int stage);

  private boolean finish() {
    boolean moved = false;
    if (!finished1 && next == end && generatedBegin == generatedEnd) {
      finished1 = tryFinish(1) == Outcome.DONE;
      moved = finished1;
    }
    if (!finished2 && ended1 && forwardBegin == forwardEnd) {
      finished2 = tryFinish(2) == Outcome.DONE;
      moved |= finished2;
    }
    return moved;
  }
}
