package io.faro.sql.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.Setting;
import io.faro.sql.plan.Operators;
import io.faro.sql.plan.Plan;
import io.faro.sql.plan.Planner;
import io.faro.sql.tables.Table;
import io.faro.sql.tables.Tpcc;
import io.faro.sql.tables.TpccQueries;
import io.faro.sql.tables.Tpch;
import io.faro.sql.tables.TpchQueries;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Every query gives what DuckDB gives on the same rows, on clusters of every shape. */
@Timeout(120)
class QueriesTest {
  private static final double SCALE = 0.01;
  private static final double WAREHOUSES = 0.3;
  private static final Map<String, List<Object[]>> EXPECTED = new LinkedHashMap<>();

  @BeforeAll
  static void askTheReference() throws SQLException {
    ask(Tpch.tables(SCALE), TpchQueries.ALL);
    ask(Tpcc.tables(WAREHOUSES), TpccQueries.ALL);
  }

  private static void ask(Map<String, Table> tables, Map<String, String> queries) throws SQLException {
    try (Connection reference = Reference.of(tables)) {
      for (Map.Entry<String, String> query : queries.entrySet()) {
        List<Object[]> rows = Reference.rows(reference, Reference.dialect(query.getValue()));
        assertFalse(rows.isEmpty(), query.getKey());
        EXPECTED.put(query.getKey(), rows);
      }
    }
  }

  @ParameterizedTest(name = "{0} nodes, {1} workers each, {2}, rings of {3}, rows over {4}, operators of {5}")
  @CsvSource({
    "1, 1, auto, 32KiB, faro, CALCITE", "1, 2, auto, 32KiB, faro, CALCITE", "2, 1, tcp, 32KiB, faro, CALCITE",
    "2, 2, shm, 32KiB, faro, CALCITE", "4, 1, shm, 32KiB, faro, CALCITE", "4, 2, tcp, 32KiB, faro, CALCITE",
    "2, 2, tcp, 4KiB, faro, CALCITE", "4, 1, shm, 4KiB, faro, CALCITE",
    "1, 1, auto, 32KiB, faro, FARO", "1, 2, auto, 32KiB, faro, FARO", "2, 2, shm, 32KiB, faro, FARO",
    "4, 2, tcp, 32KiB, faro, FARO", "4, 1, shm, 4KiB, faro, FARO",
    "1, 2, auto, 32KiB, sockets, CALCITE", "2, 1, auto, 32KiB, sockets, CALCITE", "4, 2, auto, 32KiB, sockets, CALCITE"
  })
  void giveWhatTheReferenceGives(
      int nodes, int workers, String transport, String ringBytes, String carrier, Operators operators) {
    Map<Setting, String> settings =
        Map.of(
            Setting.TRANSPORT, transport,
            Setting.RING_BYTES, ringBytes,
            Setting.TRANSFER_THRESHOLD_BYTES, ringBytes.equals("4KiB") ? "2KiB" : "16KiB");
    try (LocalCluster cluster = new LocalCluster(nodes, workers, settings, carrier, operators, Tpch.tables(SCALE))) {
      compare(cluster, TpchQueries.ALL);
    }
    try (LocalCluster cluster = new LocalCluster(nodes, workers, settings, carrier, operators, Tpcc.tables(WAREHOUSES))) {
      compare(cluster, TpccQueries.ALL);
    }
  }

  @Test
  void giveWhatTheReferenceGivesWithTheLeastMemoryForOperators() {
    Map<Setting, String> settings = Map.of(Setting.OPERATOR_MEMORY_BYTES, "7MiB");
    try (LocalCluster cluster =
        new LocalCluster(2, 2, settings, Carriers.FARO, Operators.FARO, Tpch.tables(SCALE))) {
      compare(cluster, TpchQueries.ALL);
    }
  }

  /** A row of a broadcast travels to 4 nodes, or would to 8 workers. */
  @Test
  void aPlanThatCountsNodesBroadcastsWhereOneThatCountsWorkersDoesNotAndGivesTheSame() {
    Map<String, Table> tables = Tpch.tables(SCALE);
    Plan ofNodes = new Planner(tables, 4, Operators.CALCITE).plan(TpchQueries.ALL.get("q14"));
    Plan ofWorkers = new Planner(tables, 8, Operators.CALCITE).plan(TpchQueries.ALL.get("q14"));
    assertTrue(ofNodes.explain().contains("delivery=[replicate]"), ofNodes::explain);
    assertFalse(ofWorkers.explain().contains("delivery=[replicate]"), ofWorkers::explain);
    try (LocalCluster cluster = new LocalCluster(4, 2, Map.of(Setting.RING_BYTES, "32KiB"), Carriers.FARO, tables)) {
      compare(cluster, "q14", ofNodes);
      compare(cluster, "q14", ofWorkers);
    }
  }

  private static void compare(LocalCluster cluster, Map<String, String> queries) {
    queries.forEach((name, sql) -> compare(cluster, name, cluster.plan(sql)));
  }

  private static void compare(LocalCluster cluster, String name, Plan plan) {
    List<Object[]> rows = cluster.run(plan);
    List<Object[]> expected = EXPECTED.get(name);
    List<String> texts = new ArrayList<>(Reference.texts(rows));
    List<String> expectedTexts = new ArrayList<>(Reference.texts(expected));
    if (name.equals(TpccQueries.ORDER_LEAVES_TIES)) {
      assertEquals(column(expected, 1), column(rows, 1), "the order of " + name);
      texts.sort(null);
      expectedTexts.sort(null);
    }
    assertEquals(expectedTexts, texts, () -> name + "\n" + plan.explain());
  }

  private static List<String> column(List<Object[]> rows, int column) {
    return Reference.texts(rows.stream().map(row -> new Object[] {row[column]}).toList());
  }
}
