package io.faro.sql.exec;

import io.faro.Aggregation;
import io.faro.Outcome;
import io.faro.sql.plan.GroupBy;
import org.apache.calcite.linq4j.Enumerable;

/** One worker's end of an aggregation: adds all of its input, and then gives the groups that come out here. */
final class GroupedRows extends StageRows {
  private final GroupBy groupBy;
  private final Aggregation aggregation;
  private boolean isWanted = true; // by any worker

  GroupedRows(GroupBy groupBy, Aggregation aggregation, Enumerable<?> rows, Runnable whenInputEnds) {
    super(rows, groupBy.getRowType().getFieldCount(), whenInputEnds);
    this.groupBy = groupBy;
    this.aggregation = aggregation;
  }

  @Override
  Object[] pull() throws InterruptedException {
    while (!isGiven()) {
      giveOne();
    }
    Outcome outcome = aggregation.next();
    if (outcome == Outcome.DONE) {
      return groupBy.row(aggregation.get());
    }
    check(outcome, Outcome.END_OF_STREAM);
    return null;
  }

  @Override
  void give(Object[] row) throws InterruptedException {
    if (!isWanted) {
      return;
    }
    Outcome added = aggregation.add(groupBy.added(row));
    if (added != Outcome.DONE) {
      check(added, Outcome.STOPPED);
      isWanted = false;
    }
  }

  @Override
  void finish() throws InterruptedException {
    Outcome finished = aggregation.finish();
    if (finished != Outcome.DONE) {
      check(finished, Outcome.STOPPED);
    }
  }

  @Override
  void stop() {
    aggregation.stop();
  }

  private void check(Outcome outcome, Outcome expected) {
    if (outcome != expected) {
      throw new IllegalStateException("stage " + groupBy.stage() + " answers " + outcome);
    }
  }
}
