package io.faro.sql.plan;

import org.apache.calcite.DataContext;
import org.apache.calcite.linq4j.Enumerable;

/** What the generated program of a query asks of the worker that runs it. Threads: the worker's. */
public interface PlanContext extends DataContext {
  /** Before the program runs: opens what all stages need, so that nobody's rows come too early. */
  void open();

  /** Called by generated programs: the part of a table that is this worker's. */
  Enumerable<Object[]> scan(String table);

  /** Called by generated programs: {@code rows} go where the exchange sends them, and what comes in is returned. */
  Enumerable<Object> exchange(int stage, Enumerable<?> rows);

  /** Called by generated programs: {@code rows} are added to the groups of a stage, and those of this worker are returned. */
  Enumerable<Object> group(int stage, Enumerable<?> rows);

  /** After the program has run. A limit may have left rows unread; sends what others wait for nevertheless. */
  void complete();
}
