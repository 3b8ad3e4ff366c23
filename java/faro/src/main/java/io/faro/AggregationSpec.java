package io.faro;

import java.util.List;
import java.util.Objects;

/**
 * What to group: every worker that takes part opens an equal spec. Keys are columns of the rows.
 * Nulls are one group, and so are all NaN; -0.0 is 0.0, and comes out so. Without keys there is one
 * group, also if there is no row; it comes out at the first receiver.
 *
 * @param query the query
 * @param stage it takes this one, as a shuffle does
 * @param rows the columns of the rows that are added
 * @param keys numbers of columns
 * @param aggregates what is computed of each group
 * @param senders who adds rows: worker numbers; empty: all workers
 * @param receivers who gets groups: worker numbers; empty: all workers
 */
public record AggregationSpec(
    QueryId query,
    int stage,
    List<Column> rows,
    List<Integer> keys,
    List<Aggregate> aggregates,
    List<Integer> senders,
    List<Integer> receivers) {
  /**
   * Copies the lists. What the columns can have is checked when it is opened.
   *
   * @throws FaroException {@link Code#INVALID_ARGUMENT} naming what is negative
   */
  public AggregationSpec {
    Objects.requireNonNull(query, "query");
    if (stage < 0) {
      throw new FaroException(Code.INVALID_ARGUMENT, "stage = " + stage + " is negative");
    }
    rows = Nulls.none(rows, "rows");
    keys = Nulls.none(keys, "keys");
    for (int i = 0; i < keys.size(); i++) {
      if (keys.get(i) < 0) {
        throw new FaroException(
            Code.INVALID_ARGUMENT, "keys[" + i + "] = " + keys.get(i) + " is negative");
      }
    }
    aggregates = Nulls.none(aggregates, "aggregates");
    senders = Nulls.none(senders, "senders");
    receivers = Nulls.none(receivers, "receivers");
  }

  /** From all workers to all workers. */
  public AggregationSpec(
      QueryId query,
      int stage,
      List<Column> rows,
      List<Integer> keys,
      List<Aggregate> aggregates) {
    this(query, stage, rows, keys, aggregates, List.of(), List.of());
  }
}
