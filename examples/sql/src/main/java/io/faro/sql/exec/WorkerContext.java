package io.faro.sql.exec;

import io.faro.Aggregation;
import io.faro.Worker;
import io.faro.sql.plan.Exchange;
import io.faro.sql.plan.GroupBy;
import io.faro.sql.plan.Plan;
import io.faro.sql.plan.PlanContext;
import io.faro.sql.plan.Stage;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TimeZone;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.calcite.adapter.java.JavaTypeFactory;
import org.apache.calcite.linq4j.AbstractEnumerable;
import org.apache.calcite.linq4j.Enumerable;
import org.apache.calcite.linq4j.Enumerator;
import org.apache.calcite.linq4j.Linq4j;
import org.apache.calcite.linq4j.QueryProvider;
import org.apache.calcite.schema.SchemaPlus;

/** What one worker is to the plan that it runs. Threads: the worker's. */
final class WorkerContext implements PlanContext, AutoCloseable {
  private static final int ROWS_PER_CHECK = 4096;

  private final Carrier carrier;
  private final Worker worker;
  private final int workers;
  private final Query query;
  private final Plan plan;
  private Shuffles shuffles; // null: not open
  private final Map<Integer, Aggregation> aggregations = new HashMap<>(); // by stage
  private final NavigableMap<Integer, StageRows> stages = new TreeMap<>(); // those that the program has come to
  private final Map<Integer, List<Object>> kept = new HashMap<>(); // by stage
  private final Deque<Integer> toKeep = new ArrayDeque<>(); // stages, inputs first
  private boolean isKeeping;
  private final Map<String, Object> variables = new HashMap<>();

  /** {@code workers}: of the whole cluster. */
  WorkerContext(Carrier carrier, Worker worker, int workers, Query query, Plan plan) {
    this.carrier = carrier;
    this.worker = worker;
    this.workers = workers;
    this.query = query;
    this.plan = plan;
    variables.put(Variable.UTC_TIMESTAMP.camelName, query.startMs());
    variables.put(Variable.CURRENT_TIMESTAMP.camelName, query.startMs());
    variables.put(Variable.LOCAL_TIMESTAMP.camelName, query.startMs());
    variables.put(Variable.TIME_ZONE.camelName, TimeZone.getTimeZone("UTC"));
    variables.put(Variable.CANCEL_FLAG.camelName, new AtomicBoolean());
  }

  @Override
  public void open() {
    shuffles =
        carrier.open(
            worker,
            query.id(),
            plan.exchanges().stream().map(exchange -> exchange.shuffle(query.id())).toList());
    for (GroupBy groupBy : plan.groupBys()) {
      aggregations.put(groupBy.stage(), worker.openAggregation(groupBy.aggregation(query.id())));
    }
  }

  @Override
  public Enumerable<Object[]> scan(String table) {
    return new AbstractEnumerable<>() {
      @Override
      public Enumerator<Object[]> enumerator() {
        keepRows();
        return new CheckedRows<>(
            Linq4j.iterableEnumerator(plan.table(table).rows(worker.number(), workers)),
            ROWS_PER_CHECK,
            WorkerContext.this::checkQuery);
      }
    };
  }

  @Override
  public Enumerable<Object> exchange(int stage, Enumerable<?> rows) {
    Exchange exchange = (Exchange) plan.stages().get(stage);
    StageRows exchanged =
        new ExchangedRows(
            exchange, shuffles.stage(stage), worker.number(), rows, () -> completeBelow(exchange));
    stages.put(stage, exchanged);
    if (!exchange.isKept()) {
      return once(stage, exchanged);
    }
    toKeep.add(stage);
    return new AbstractEnumerable<>() {
      @Override
      public Enumerator<Object> enumerator() {
        keepRows();
        checkQuery();
        return Linq4j.iterableEnumerator(kept.get(stage));
      }
    };
  }

  @Override
  public Enumerable<Object> group(int stage, Enumerable<?> rows) {
    GroupBy groupBy = (GroupBy) plan.stages().get(stage);
    StageRows grouped =
        new GroupedRows(groupBy, aggregations.get(stage), rows, () -> completeBelow(groupBy));
    stages.put(stage, grouped);
    return once(stage, grouped);
  }

  private Enumerable<Object> once(int stage, StageRows rows) {
    return new AbstractEnumerable<>() {
      private boolean isTaken;

      @Override
      public Enumerator<Object> enumerator() {
        keepRows();
        if (isTaken) {
          throw new IllegalStateException("stage " + stage + " is read twice, but not kept");
        }
        isTaken = true;
        return rows;
      }
    };
  }

  /**
   * Before rows are pulled from anywhere: reads what is kept. Like all pulling this goes in the same order at
   * every worker, whatever the rows are: else one could wait for rows of an exchange to which another does not
   * come before it has got some of a third.
   */
  private void keepRows() {
    if (isKeeping) {
      return;
    }
    isKeeping = true;
    while (!toKeep.isEmpty()) {
      int stage = toKeep.remove();
      List<Object> all = new ArrayList<>();
      StageRows rows = stages.get(stage);
      while (rows.moveNext()) {
        all.add(rows.current());
      }
      kept.put(stage, all);
    }
    isKeeping = false;
  }

  @Override
  public void complete() {
    complete(stages);
    shuffles.complete();
  }

  private void completeBelow(Stage stage) {
    complete(stages.subMap(stage.firstBelow(), true, stage.stage(), false));
  }

  private static void complete(NavigableMap<Integer, StageRows> stages) {
    stages.descendingMap().values().forEach(StageRows::complete);
  }

  /** Throws if the query has failed or was cancelled: for loops that send and receive nothing. */
  private void checkQuery() {
    shuffles.check();
  }

  @Override
  public void close() {
    aggregations.values().forEach(Aggregation::close);
    if (shuffles != null) {
      shuffles.close();
    }
  }

  @Override
  public SchemaPlus getRootSchema() {
    return null;
  }

  @Override
  public JavaTypeFactory getTypeFactory() {
    return plan.typeFactory();
  }

  @Override
  public QueryProvider getQueryProvider() {
    return null;
  }

  @Override
  public Object get(String name) {
    return variables.get(name);
  }
}
