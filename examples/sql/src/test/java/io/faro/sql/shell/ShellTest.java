package io.faro.sql.shell;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * The shell with nodes in processes of their own: what it shows, and that it goes on after what goes wrong. Most
 * tests share one shell, and each asks it something again at its end.
 */
@Timeout(300)
class ShellTest {
  /** 3.6 billion comparisons. */
  private static final String LONG =
      "select count(*) from lineitem a, lineitem b where a.l_comment < b.l_comment;";

  private static final String REGIONS = "select count(*) as regions from region;";

  private static ShellProcess shell;

  @BeforeAll
  static void start() throws Exception {
    shell = new ShellProcess("--nodes=2", "--workers=2", "--verbose");
  }

  @AfterAll
  static void stop() throws Exception {
    shell.close();
  }

  /** The processes that answer. */
  private static List<Long> expectRegions() throws Exception {
    return expectRegions(shell);
  }

  private static List<Long> expectRegions(ShellProcess shell) throws Exception {
    shell.type(REGIONS);
    List<Long> pids = shell.expectPids();
    shell.expect("regions");
    shell.expect("---------");
    shell.expect("       5");
    return pids;
  }

  @Test
  void showsResultsPlansAndTables() throws Exception {
    shell.type("select r_name, r_regionkey");
    shell.type("from region order by r_name desc limit 1;");
    assertEquals(" r_name      | r_regionkey", shell.expect("r_name"));
    assertEquals(" MIDDLE EAST |           4", shell.expect("MIDDLE EAST"));
    shell.expect("(1 row, ");
    shell.type("explain select o_custkey, count(*) from orders group by o_custkey;");
    shell.expect("Exchange(distribution=[single], delivery=[worker], stage=[1])");
    shell.expect("GroupBy(group=[{0}], EXPR$1=[COUNT()], stage=[0])");
    shell.type("\\d");
    shell.expect("lineitem");
    shell.type("\\d lineitem");
    shell.expect("l_extendedprice decimal(15,2) not null");
  }

  @Test
  void limitsAndSubQueriesThatReadSomeOfTheRowsEndLikeOthers() throws Exception {
    shell.type("select o_orderkey, l_linenumber from orders, lineitem where o_orderkey = l_orderkey limit 2;");
    shell.expect("(2 rows, ");
    shell.type("select * from nation, region where n_regionkey < r_regionkey limit 3;");
    shell.expect("(3 rows, ");
    shell.type(
        "select count(*) as pairs from nation n, (select r_name from region, (select * from nation limit 9) m"
            + " where r_regionkey > m.n_regionkey) r where n_name < r_name;");
    shell.expect("(1 row, ");
    shell.type("select * from nation limit 0;");
    shell.expect("(0 rows, ");
    shell.type(
        "select (select count(*) from region) as a,"
            + " (select count(*) from nation, region where n_regionkey < r_regionkey) as b, sum(n_regionkey) as c,"
            + " count(distinct n_regionkey) as d from nation;");
    assertEquals(" 5 | 50 | 50 | 5", shell.expect("50 |"));
    expectRegions();
  }

  @Test
  void saysWhatIsWrongWithAStatement() throws Exception {
    shell.type("select from where;");
    shell.expect("error: Encountered \"from\" at line 1, column 8");
    shell.type("select x from region;");
    shell.expect("error: At line 1, column 8: Column 'x' not found in any table");
    shell.type("select rank() over (order by r_name) from region;");
    shell.expect("error: this engine has no window functions");
    shell.type("select r_name from region intersect select n_name from nation;");
    shell.expect("error: this engine has no operator LogicalIntersect");
    shell.type("select 1 / (r_regionkey - 4) from region;");
    shell.expect("worker 0: java.lang.ArithmeticException: / by zero");
    shell.type("\\nonsense");
    shell.expect("error: not understood: \\nonsense");
    expectRegions();
  }

  @Test
  void aNodeThatIsKilledFailsTheQueryByItsNameAndTheNextOneRuns() throws Exception {
    shell.type(LONG);
    long node1 = shell.expectPids().get(1);
    ShellProcess.signal("KILL", node1);
    shell.expect("error: node 1 (127.0.0.1:");
    assertNotEquals(node1, expectRegions().get(1));
  }

  @Test
  void aNodeThatIsKilledBetweenQueriesIsStartedAnew() throws Exception {
    long node1 = expectRegions().get(1);
    ProcessHandle process = ProcessHandle.of(node1).orElseThrow();
    ShellProcess.signal("KILL", node1);
    process.onExit().join();
    assertNotEquals(node1, expectRegions().get(1));
  }

  @Test
  void ctrlCCancelsTheQueryAndTheNextOneRunsInTheSameProcesses() throws Exception {
    shell.type(LONG);
    List<Long> pids = shell.expectPids();
    shell.interrupt();
    shell.expect("cancelled at the shell");
    assertEquals(pids, expectRegions());
  }

  @Test
  void aTimeLimitCancelsTheQueryAndTheNextOneRunsInTheSameProcesses() throws Exception {
    List<Long> pids = expectRegions();
    shell.type("\\timeout 100");
    shell.type(LONG);
    shell.expect("it has run into its time limit of 100 ms");
    shell.type("\\timeout 0");
    assertEquals(pids, expectRegions());
  }

  /**
   * First line items of a supplier meet, and nearly every pair is a group: more than the heap holds. Faro's groups lie
   * outside of it.
   */
  @Test
  void groupsThatDoNotFitTheHeapFailAQueryWithCalcitesOperatorsAndNotWithThoseOfFaro() throws Exception {
    String pairs =
        " from lineitem a, lineitem b where a.l_suppkey = b.l_suppkey and a.l_linenumber = 1 and b.l_linenumber = 1";
    String grouped =
        "select count(*) > 2000000 as many, sum(n) as pairs from"
            + " (select count(*) as n" + pairs + " group by a.l_comment || b.l_comment) as texts;";
    shell.type("select count(*) as pairs" + pairs + ";");
    shell.expect("-----");
    String count = shell.expect("").strip();
    shell.type(grouped);
    shell.expect("-+-");
    assertEquals("true | " + count, shell.expect("|").strip());
    try (ShellProcess other = new ShellProcess("--nodes=2", "--workers=2", "--verbose", "--operators=calcite")) {
      other.type(grouped);
      String error = other.expect("error: ");
      assertTrue(error.contains("java.lang.OutOfMemoryError: Java heap space"), error);
      expectRegions(other);
    }
  }

  @Test
  void readsTablesOfAFolderOfCsvFiles(@TempDir Path folder) throws Exception {
    Files.writeString(
        folder.resolve("item.csv"),
        """
        id integer not null,name varchar,"price decimal(9,2) not null",since date,sold timestamp
        1,"pen, red",1.5,2024-02-29,2024-03-01 12:30:00
        2,"",20.00,,
        3,,300,2023-01-01,
        """);
    Files.writeString(folder.resolve("tag.csv"), "item integer not null,tag varchar not null\n3,x\n1,y\n3,z\n");
    Files.writeString(folder.resolve("wrong.csv"), "item integer not null\n3\nfour\n");
    try (ShellProcess other = new ShellProcess("--nodes=2", "--workers=1", "--data=" + folder)) {
      other.type("select * from item order by id;");
      assertEquals(" id | name     |  price | since      | sold", other.expect("| sold"));
      other.expect("-+-");
      assertEquals("  1 | pen, red |   1.50 | 2024-02-29 | 2024-03-01T12:30", other.expect("|"));
      assertEquals("  2 |          |  20.00 | null       | null", other.expect("|"));
      assertEquals("  3 | null     | 300.00 | 2023-01-01 | null", other.expect("|"));
      other.type("select sum(price) as total from item, tag where id = item;");
      other.expect("601.50");
      other.type("select count(*) from wrong;");
      other.expect("wrong.csv, row 3, item: For input string: \"four\"");
      other.type("\\q");
      assertEquals(1, other.end());
    }
  }

  @Test
  void statementsOfTheCommandLineEndWithAStatus() throws Exception {
    try (ShellProcess other = new ShellProcess("--nodes=1", "-e", "select", "-e", REGIONS)) {
      other.expect("error: ");
      other.expect("(1 row, ");
      assertEquals(1, other.end());
    }
    try (ShellProcess other = new ShellProcess("--nodes=1", "--data=/nowhere")) {
      other.expect("error: the folder of tables cannot be read");
      assertEquals(1, other.end());
    }
  }
}
