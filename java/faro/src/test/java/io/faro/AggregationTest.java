package io.faro;

import static io.faro.Checks.codeOf;
import static io.faro.Checks.messageOf;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.Aggregate.Function;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class AggregationTest {
  private static final List<Column> SALES =
      List.of(
          Column.nullable(ColumnType.STRING),
          Column.of(ColumnType.INT),
          Column.decimal(9, 2, true));
  private static final List<Aggregate> FUNCTIONS =
      List.of(
          Aggregate.countRows(),
          Aggregate.of(Function.SUM, 1),
          Aggregate.of(Function.SUM, 2),
          Aggregate.of(Function.MAX, 0));

  /** What a worker does with its aggregation. */
  interface Part {
    void run(Worker worker, Aggregation aggregation) throws Exception;
  }

  private Cluster cluster;

  @AfterEach
  void close() {
    if (cluster != null) {
      cluster.close();
    }
  }

  private void onWorkers(QueryId query, AggregationSpec spec, Part part) {
    List<CompletableFuture<Void>> parts = new ArrayList<>();
    for (int w = 0; w < cluster.workerCount(); w++) {
      Worker worker = cluster.worker(w);
      parts.add(
          CompletableFuture.runAsync(
              () -> {
                try {
                  try (Aggregation aggregation = worker.openAggregation(spec)) {
                    part.run(worker, aggregation);
                  }
                  worker.endQuery(query);
                } catch (Exception problem) {
                  throw new IllegalStateException(problem);
                } finally {
                  worker.releaseOwnership();
                }
              },
              work -> new Thread(work).start())); // the common pool may have fewer threads than there are workers
    }
    parts.forEach(CompletableFuture::join);
  }

  private static Object[] row(int i) {
    String name = i % 7 == 0 ? null : "shop " + i % 1000 + "x".repeat(i % 30);
    return new Object[] {name, i, i % 3 == 0 ? null : new BigDecimal(i).movePointLeft(2)};
  }

  private static List<Object> key(Object[] row) {
    return Collections.singletonList(row[0]);
  }

  @Test
  void eachGroupComesOnceWithAllOfItsRows() {
    // Small rings, so that adding waits; and as little memory as the operators take.
    cluster =
        new Cluster(
            2,
            1,
            config ->
                config
                    .set(Setting.RING_BYTES, 4096)
                    .set(Setting.TRANSFER_THRESHOLD_BYTES, 1024)
                    .set(Setting.OPERATOR_MEMORY_BYTES, 2 << 20));
    int rows = 40_000;
    QueryId query = cluster.beginQuery();
    AggregationSpec spec = new AggregationSpec(query, 0, SALES, List.of(0), FUNCTIONS);
    Map<List<Object>, Object[]> groups = Collections.synchronizedMap(new HashMap<>());
    onWorkers(
        query,
        spec,
        (worker, aggregation) -> {
          for (int i = worker.number(); i < rows; i += 2) {
            assertEquals(Outcome.DONE, aggregation.add(row(i)));
          }
          assertEquals(Outcome.DONE, aggregation.finish());
          assertNull(aggregation.get());
          while (aggregation.next() == Outcome.DONE) {
            Object[] group = aggregation.get();
            assertNull(groups.put(key(group), group), () -> group[0] + " comes twice");
          }
          assertEquals(rows / 2, aggregation.metrics().rows());
          assertEquals(
              List.of(
                  Column.nullable(ColumnType.STRING),
                  Column.of(ColumnType.LONG),
                  Column.of(ColumnType.LONG),
                  new Column(ColumnType.DECIMAL_38, true, 2),
                  Column.nullable(ColumnType.STRING)),
              aggregation.schema());
        });
    Map<List<Object>, Object[]> expected = new HashMap<>();
    for (int i = 0; i < rows; i++) {
      Object[] row = row(i);
      Object[] group =
          expected.computeIfAbsent(
              key(row), k -> new Object[] {row[0], 0L, 0L, null, row[0]});
      group[1] = (long) group[1] + 1;
      group[2] = (long) group[2] + (int) row[1];
      if (row[2] != null) {
        group[3] = group[3] == null ? row[2] : ((BigDecimal) group[3]).add((BigDecimal) row[2]);
      }
    }
    assertEquals(expected.keySet(), groups.keySet());
    expected.forEach((key, group) -> assertArrayEquals(group, groups.get(key), key::toString));
  }

  @Test
  void aSessionShowsOperatorsThatLiveAndTotalsOfAll() {
    cluster = new Cluster("auto", 1, 2);
    Session session = cluster.session(0);
    QueryId query = cluster.beginQuery();
    onWorkers(
        query,
        new AggregationSpec(query, 3, SALES, List.of(0), FUNCTIONS),
        (worker, aggregation) -> {
          for (int i = 0; i < 100; i++) {
            assertEquals(Outcome.DONE, aggregation.add(row(i)));
          }
          assertEquals(Outcome.DONE, aggregation.finish());
          while (aggregation.next() == Outcome.DONE) {}
          OperatorMetrics shown =
              session.metrics().operators().stream()
                  .filter(one -> one.worker() == worker.number())
                  .findFirst()
                  .orElseThrow();
          AggregationMetrics told = aggregation.metrics();
          assertEquals(OperatorKind.AGGREGATION, shown.kind());
          assertEquals(query, shown.query());
          assertEquals(3, shown.stage());
          assertEquals(100, shown.rowsIn());
          assertEquals(told.groups(), shown.rowsOut());
          assertEquals(told.statesSent(), shown.statesSent());
          assertEquals(told.statesReceived(), shown.rowsArrived());
          assertEquals(told.peakBytes(), shown.peakBytes());
          assertTrue(shown.heldBytes() <= shown.peakBytes(), shown.toString());
          assertEquals(100L, shown.counters().get("rows_in"));
        });
    SessionMetrics after = session.metrics();
    assertEquals(List.of(), after.operators());
    assertEquals(
        List.of(0, 0, 1, 1), after.operatorTotals().stream().map(OperatorTotals::worker).toList());
    for (OperatorTotals all : after.operatorTotals()) {
      boolean isAggregation = all.kind() == OperatorKind.AGGREGATION;
      assertEquals(isAggregation ? 100 : 0, all.rowsIn());
      assertEquals(0, all.heldBytes());
    }
  }

  @Test
  void rowsInMemoryAreAddedAsTheyLie() {
    cluster = new Cluster("auto", 1, 1);
    QueryId query = cluster.beginQuery();
    AggregationSpec spec =
        new AggregationSpec(
            query,
            0,
            List.of(Column.of(ColumnType.LONG), Column.of(ColumnType.INT)),
            List.of(1),
            List.of(Aggregate.of(Function.SUM, 0).as(Column.decimal(38, 0, false))));
    onWorkers(
        query,
        spec,
        (worker, aggregation) -> {
          ByteBuffer rows = ByteBuffer.allocateDirect(12 * 1000).order(ByteOrder.LITTLE_ENDIAN);
          for (int i = 0; i < 1000; i++) {
            rows.putLong(Long.MAX_VALUE).putInt(5);
          }
          rows.flip();
          assertEquals(Outcome.DONE, aggregation.addRows(rows));
          assertEquals(rows.limit(), rows.position());
          ByteBuffer damaged = ByteBuffer.allocateDirect(12 + 5);
          assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> aggregation.addRows(damaged, Wait.NONE)));
          assertEquals(12, damaged.position());
          assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> aggregation.addRows(ByteBuffer.allocate(12), Wait.NONE)));
          assertEquals(Outcome.DONE, aggregation.finish());
          Map<Object, Object> sums = new HashMap<>();
          while (aggregation.next() == Outcome.DONE) {
            sums.put(aggregation.get()[0], aggregation.get()[1]);
          }
          BigDecimal sum = BigDecimal.valueOf(Long.MAX_VALUE).multiply(new BigDecimal(1000));
          assertEquals(Map.of(5, sum, 0, new BigDecimal(0)), sums);
        });
  }

  @Test
  void aRowLargerThanTheMemoryOfTheOthersIsAddedToo() {
    cluster = new Cluster("auto", 1, 1);
    QueryId query = cluster.beginQuery();
    AggregationSpec spec =
        new AggregationSpec(
            query, 0, List.of(Column.of(ColumnType.STRING)), List.of(), List.of(Aggregate.of(Function.MAX, 0)));
    onWorkers(
        query,
        spec,
        (worker, aggregation) -> {
          String large = "z".repeat(200_000);
          for (String text : List.of("a", large, "b")) {
            assertEquals(Outcome.DONE, aggregation.add(new Object[] {text}));
          }
          assertEquals(Outcome.DONE, aggregation.finish());
          assertEquals(Outcome.DONE, aggregation.next());
          assertArrayEquals(new Object[] {large}, aggregation.get());
          assertEquals(Outcome.END_OF_STREAM, aggregation.next());
        });
  }

  @Test
  void misuseIsRefusedByName() throws Exception {
    cluster = new Cluster("auto", 1, 1);
    Worker worker = cluster.worker(0);
    QueryId query = cluster.beginQuery();
    AggregationSpec wrong =
        new AggregationSpec(query, 0, SALES, List.of(0), List.of(Aggregate.of(Function.SUM, 0)));
    assertTrue(messageOf(() -> worker.openAggregation(wrong)).contains("sum(column 0): it is STRING or null"));
    assertEquals(
        "keys[1] = -1 is negative",
        messageOf(() -> new AggregationSpec(query, 0, SALES, List.of(0, -1), FUNCTIONS)));
    assertEquals("column = -2 is negative", messageOf(() -> Aggregate.of(Function.SUM, -2)));
    Aggregation aggregation = worker.openAggregation(new AggregationSpec(query, 0, SALES, List.of(0), FUNCTIONS));
    assertEquals("row", assertThrows(NullPointerException.class, () -> aggregation.add(null, Wait.NONE)).getMessage());
    assertEquals(
        "wait",
        assertThrows(NullPointerException.class, () -> aggregation.add(new Object[] {"a", 1, null}, null)).getMessage());
    assertEquals(Code.WRONG_STATE, codeOf(() -> aggregation.next(Wait.NONE)));
    assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> aggregation.add(new Object[] {1, 1, null}, Wait.NONE)));
    assertEquals(Outcome.DONE, aggregation.add(new Object[] {"a", 1, null}));
    aggregation.stop();
    assertEquals(Outcome.DONE, aggregation.finish());
    assertEquals(Outcome.END_OF_STREAM, aggregation.next());
    AggregationMetrics metrics = aggregation.metrics();
    aggregation.close();
    aggregation.close();
    assertEquals(1, aggregation.metrics().rows());
    assertEquals(metrics, aggregation.metrics());
    assertEquals(Code.CLOSED, codeOf(() -> aggregation.next(Wait.NONE)));
    worker.endQuery(query);
  }

  @Test
  void aPartThatFailsClosesItsAggregation() throws Exception {
    cluster = new Cluster("auto", 1, 1);
    Worker worker = cluster.worker(0);
    QueryId query = cluster.beginQuery();
    Aggregation aggregation = worker.openAggregation(new AggregationSpec(query, 0, SALES, List.of(0), FUNCTIONS));
    assertEquals(Outcome.DONE, aggregation.add(row(1)));
    worker.endQuery(query, new IllegalStateException("enough"));
    assertEquals(Code.CLOSED, codeOf(() -> aggregation.finish(Wait.NONE)));
  }
}
