package io.faro.bench;

import io.faro.Frame;
import io.faro.LongSender;
import io.faro.Outcome;
import io.faro.Shuffle;
import io.faro.ShuffleSpec;
import io.faro.Worker;

/**
 * One worker of the two-stage job on Faro, as {@code native/bench/two_stage_worker.h}: the paper's
 * polling process. No step waits; the worker waits, in one place and for anything at all, only if no
 * step could move a row.
 */
final class FaroWorker implements RoundWorker {
  private static final int BLOCK = 2048; // rows between two looks at what has arrived

  private final TwoStageJob job;
  private final Worker worker;

  private Shuffle stage1;
  private Shuffle stage2;
  private LongSender sender1;
  private LongSender sender2;
  private Frame frame1;
  private Frame frame2;

  private final long[] generated = new long[BLOCK]; // not yet sent: [generatedBegin, generatedEnd)
  private int generatedBegin;
  private int generatedEnd;
  private long[] forwarded = new long[BLOCK]; // transformed, not yet sent
  private int forwardBegin;
  private int forwardEnd;
  private long[] consumed = new long[BLOCK];
  private long next; // still to be generated: [next, end)
  private long end;
  private boolean finished1; // this worker has said that it sends no more
  private boolean finished2;
  private boolean ended1; // nobody sends it any more
  private boolean ended2;
  private long count;
  private long checksum;

  FaroWorker(TwoStageJob job, Worker worker) {
    this.job = job;
    this.worker = worker;
  }

  @Override
  public void run(Round round) throws InterruptedException {
    open(round);
    try {
      while (!over()) {
        if (!turn()) {
          worker.waitUntil(this::turn);
        }
      }
    } finally {
      stage1.close();
      stage2.close();
    }
    worker.endQuery(round.query());
  }

  @Override
  public long count() {
    return count;
  }

  @Override
  public long checksum() {
    return checksum;
  }

  private void open(Round round) {
    stage1 = worker.openShuffle(new ShuffleSpec(round.query(), 1, Long.BYTES));
    stage2 = worker.openShuffle(new ShuffleSpec(round.query(), 2, Long.BYTES));
    sender1 = stage1.longSender();
    sender2 = stage2.longSender();
    frame1 = stage1.newFrame();
    frame2 = stage2.newFrame();
    next = job.rangeBegin(worker.number());
    end = job.rangeEnd(worker.number());
    generatedBegin = generatedEnd = forwardBegin = forwardEnd = 0;
    finished1 = finished2 = ended1 = ended2 = false;
    count = checksum = 0;
  }

  private boolean over() {
    return finished2 && ended2;
  }

  /** Does what can be done without waiting; false if that was nothing. */
  private boolean turn() {
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
      Outcome outcome = stage2.tryPoll(frame2);
      if (outcome != Outcome.DONE) {
        ended2 = outcome == Outcome.END_OF_STREAM;
        return moved || ended2;
      }
      int rows = frame2.rowCount();
      if (rows > consumed.length) {
        consumed = new long[rows];
      }
      frame2.getLongs(0, consumed, 0, rows);
      checksum += TwoStageJob.sumOfMix(consumed, rows);
      count += rows;
      moved = true;
    }
    return moved;
  }

  /** A frame of stage 1 to stage 2; given back before its rows are sent, so that none is held. */
  private boolean forward() {
    boolean moved = false;
    if (forwardBegin == forwardEnd) {
      if (ended1) {
        return false;
      }
      Outcome outcome = stage1.tryPoll(frame1);
      if (outcome != Outcome.DONE) {
        ended1 = outcome == Outcome.END_OF_STREAM;
        return ended1;
      }
      int rows = frame1.rowCount();
      if (rows > forwarded.length) {
        forwarded = new long[rows];
      }
      frame1.getLongs(0, forwarded, 0, rows);
      frame1.release();
      TwoStageJob.transformAll(forwarded, rows);
      forwardBegin = 0;
      forwardEnd = rows;
      moved = true;
    }
    int taken = sender2.trySendAll(forwarded, forwardBegin, forwardEnd, job.partition());
    forwardBegin += taken;
    return moved || taken > 0;
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
    int taken = sender1.trySendAll(generated, generatedBegin, generatedEnd, job.partition());
    generatedBegin += taken;
    return taken > 0;
  }

  private boolean finish() {
    boolean moved = false;
    if (!finished1 && next == end && generatedBegin == generatedEnd) {
      finished1 = stage1.tryFinish() == Outcome.DONE;
      moved = finished1;
    }
    if (!finished2 && ended1 && forwardBegin == forwardEnd) {
      finished2 = stage2.tryFinish() == Outcome.DONE;
      moved |= finished2;
    }
    return moved;
  }
}
