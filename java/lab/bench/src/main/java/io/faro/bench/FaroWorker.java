package io.faro.bench;

import io.faro.Outcome;
import io.faro.Shuffle;
import io.faro.ShuffleSpec;
import io.faro.Wait;
import io.faro.Worker;

/** One worker of the two-stage job on Faro. */
final class FaroWorker extends PlanWorker {
  private final TwoStageJob job;
  private final RowsLevel level;
  private final Worker worker;

  private Shuffle stage1;
  private Shuffle stage2;

  FaroWorker(TwoStageJob job, RowsLevel level, Worker worker) {
    super(job, worker.number());
    this.job = job;
    this.level = level;
    this.worker = worker;
  }

  @Override
  public void run(Round round) throws InterruptedException {
    stage1 = worker.openShuffle(new ShuffleSpec(round.query(), 1, Long.BYTES));
    stage2 = worker.openShuffle(new ShuffleSpec(round.query(), 2, Long.BYTES));
    begin(level.open(stage1, job.partition()), level.open(stage2, job.partition()));
    try {
      while (!over()) {
        if (!turn()) {
          if (worker.waitUntil(this::turn) != Outcome.DONE) {
            throw new IllegalStateException("a batch is held between two turns");
          }
        }
      }
    } finally {
      stage1.close();
      stage2.close();
    }
    worker.endQuery(round.query());
  }

  @Override
  protected Outcome tryFinish(int stage) {
    return (stage == 1 ? stage1 : stage2).sender().finish(Wait.NONE);
  }
}
