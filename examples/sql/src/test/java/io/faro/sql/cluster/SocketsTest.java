package io.faro.sql.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.Setting;
import io.faro.sql.plan.Plan;
import io.faro.sql.shell.ShellProcess;
import io.faro.sql.tables.Attribute;
import io.faro.sql.tables.Table;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.calcite.util.ImmutableBitSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Queries whose rows go over sockets: how they fail. {@link QueriesTest} compares what they give. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD) // a wait without end ends the test, too
class SocketsTest {
  private static final int LIMIT_S = 30; // for a query to have ended everywhere
  private static final String GROUPS = "select k, count(*), max(v) from t group by k order by k";
  private static final Map<Setting, String> SETTINGS = Map.of(Setting.TRANSPORT, "shm");

  /** Table t: {@code rows} rows at each worker, with a text of {@code width} characters. */
  private static Map<String, Table> table(int rows, int width) {
    Map<String, Table> tables = new HashMap<>();
    tables.put(
        "t",
        new Table(
            List.of(Attribute.integer("k"), Attribute.text("v")),
            ImmutableBitSet.of(),
            rows,
            (part, parts) -> {
              List<Object[]> made = new ArrayList<>();
              for (int i = 0; i < rows; i++) {
                made.add(new Object[] {i % 7, Character.toString('a' + i % 26).repeat(width)});
              }
              return made;
            }));
    return tables;
  }

  private static LocalCluster cluster(int nodes, int workers, Map<String, Table> tables) {
    return new LocalCluster(nodes, workers, SETTINGS, Carriers.SOCKETS, tables);
  }

  /** What a query has ended by, on each node. */
  private static List<String> failures(LocalCluster.Running running) throws Exception {
    List<String> failures = new ArrayList<>();
    for (CompletableFuture<List<Object[]>> node : running.nodes()) {
      node.handle((rows, failure) -> failures.add(failure == null ? "none" : failure.getMessage()))
          .get(LIMIT_S, TimeUnit.SECONDS);
    }
    return failures;
  }

  private static void assertRunsAgain(LocalCluster cluster, int rows) {
    List<Object[]> groups = cluster.run(cluster.plan(GROUPS));
    assertEquals(7, groups.size());
    assertEquals(rows, groups.stream().mapToLong(row -> (Long) row[1]).sum());
  }

  @ParameterizedTest(name = "{0} nodes, {1} workers each")
  @CsvSource({"1, 2", "2, 2", "4, 1"})
  void aWorkerThatFailsEndsTheQueryEverywhereByItsCauseAndTheNextOneRuns(int nodes, int workers) throws Exception {
    try (LocalCluster cluster = cluster(nodes, workers, table(2000, 50))) {
      // One worker has the groups that lead to a zero; the others wait for its rows.
      Plan plan = cluster.plan("select a.k, max(b.v) from t a, (select k, max(v) v, 1 / (k - 3) q from t group by k) b"
          + " where a.k = b.k and q < 9 group by a.k");
      for (int i = 0; i < 3; i++) {
        for (String failure : failures(cluster.start(plan))) {
          assertTrue(failure.contains("java.lang.ArithmeticException: / by zero"), failure);
        }
        assertRunsAgain(cluster, 2000 * nodes * workers);
      }
    }
  }

  /** In a loop that neither sends nor receives; its comparisons take minutes. */
  @ParameterizedTest(name = "over {0}")
  @ValueSource(strings = {Carriers.FARO, Carriers.SOCKETS})
  void aQueryThatIsCancelledEndsEverywhereAndTheNextOneRuns(String carrier) throws Exception {
    Map<String, Table> tables = table(5000, 10);
    CountDownLatch isLooping = new CountDownLatch(4); // each worker, in the rows that it compares to all others
    tables.put("a", new Table(List.of(Attribute.text("v")), ImmutableBitSet.of(), 1e9, (part, parts) -> endless(isLooping)));
    try (LocalCluster cluster = new LocalCluster(2, 2, SETTINGS, carrier, tables)) {
      LocalCluster.Running running = cluster.start(cluster.plan("select count(*) from a, t where a.v < t.v"));
      assertTrue(isLooping.await(LIMIT_S, TimeUnit.SECONDS));
      cluster.cancel(running, "not wanted");
      for (String failure : failures(running)) {
        assertTrue(failure.contains("not wanted"), failure);
      }
      cluster.cancel(running, "too late: it has ended");
      assertRunsAgain(cluster, 20_000);
    }
  }

  private static Iterable<Object[]> endless(CountDownLatch begun) {
    Object[] row = {"x"};
    return () -> {
      begun.countDown();
      return Stream.generate(() -> row).iterator();
    };
  }

  @Test
  @Timeout(300) // of processes that start twice
  void aProcessThatIsKilledFailsTheQueryByItsNameAndTheNextOneRuns() throws Exception {
    try (ShellProcess shell = new ShellProcess("--nodes=2", "--workers=1", "--carrier=sockets", "--verbose")) {
      shell.type("select count(*) from lineitem a, lineitem b where a.l_comment < b.l_comment;");
      ShellProcess.signal("KILL", shell.expectPids().get(1));
      shell.expect("error: node 1 (127.0.0.1:");
      shell.type("select count(*) as regions from region, nation where r_regionkey = n_regionkey;");
      shell.expect("regions");
      shell.expect("     25");
    }
  }

  /** One worker soon has all it wants, while the other one's rows for it are more than sockets hold. */
  @Test
  void aLimitLeavesNobodyWaiting() {
    Map<String, Table> tables = new HashMap<>();
    Object[] row = {3, "x".repeat(20_000)};
    Table.Partitions atTheLast = (part, parts) -> Collections.nCopies(part == parts - 1 ? 3000 : 0, row);
    Table.Partitions keys = (part, parts) -> List.of(new Object[] {part, "y"}, new Object[] {4 + part, "y"});
    List<Attribute> columns = List.of(Attribute.integer("k"), Attribute.text("v"));
    tables.put("a", new Table(columns, ImmutableBitSet.of(), 1.2e6, atTheLast));
    tables.put("b", new Table(columns, ImmutableBitSet.of(), 1e6, keys));
    try (LocalCluster cluster = cluster(4, 1, tables)) {
      Plan plan = cluster.plan("select a.v, b.v from a, b where a.k = b.k limit 3");
      assertEquals(3, plan.exchanges().size(), plan.explain()); // large, as the planner believes: none is broadcast
      for (int k = 0; k < 8; k++) { // at several workers
        row[0] = k;
        assertEquals(3, cluster.run(plan).size());
      }
    }
  }

  /** Larger than all buffers; a group goes to one worker, the right side of a join to all. */
  @Test
  void rowsMayBeLargerThanBuffers() {
    try (LocalCluster cluster = cluster(2, 2, table(14, 200_000))) {
      List<Object[]> groups = cluster.run(cluster.plan(GROUPS));
      assertEquals(7, groups.size());
      groups.forEach(row -> assertEquals(200_000, ((String) row[2]).length()));
      List<Object[]> pairs =
          cluster.run(cluster.plan("select count(*), max(b.v) from t a, (select v from t where k = 6) b where a.v <= b.v"));
      assertEquals(200_000, ((String) pairs.get(0)[1]).length());
    }
  }

  /** This holds on one node, too, where the rows are not written for anybody. */
  @ParameterizedTest(name = "over {0}")
  @ValueSource(strings = {Carriers.FARO, Carriers.SOCKETS})
  void aRowThatIsTooLargeToBeBroadcastIsRefusedByTheLimit(String carrier) {
    Map<Setting, String> settings = Map.of(Setting.ROW_LIMIT_BYTES, "1KiB");
    for (int nodes = 1; nodes <= 2; nodes++) {
      try (LocalCluster cluster = new LocalCluster(nodes, 1, settings, carrier, table(3, 1500))) {
        Plan plan = cluster.plan("select count(*) from t a, t b where a.v < b.v");
        String failure = assertThrows(CompletionException.class, () -> cluster.run(plan)).getMessage();
        assertTrue(failure.contains("is above row.limit_bytes = 1024"), failure);
      }
    }
  }
}
