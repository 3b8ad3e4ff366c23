package io.faro.sql.plan;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.sql.SqlException;
import io.faro.sql.tables.Tpch;
import io.faro.sql.tables.TpchQueries;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Where exchanges are put, by the text of plans. */
class PlannerTest {
  private static final int NODES = 16;

  private static List<String> plan(String sql) {
    return plan(sql, NODES);
  }

  private static List<String> plan(String sql, int broadcastCopies) {
    return plan(sql, broadcastCopies, Operators.CALCITE);
  }

  private static List<String> plan(String sql, int broadcastCopies, Operators operators) {
    return new Planner(Tpch.tables(1), broadcastCopies, operators).plan(sql).explain().lines().toList();
  }

  @ParameterizedTest
  @ValueSource(strings = {"q3", "q5", "q14"})
  void theLargestTableIsNotSentToEverybody(String query) {
    List<String> lines = plan(TpchQueries.ALL.get(query));
    for (int i = 0; i < lines.size(); i++) {
      if (lines.get(i).contains("distribution=[broadcast]")) {
        for (int below = i + 1; below < lines.size() && depth(lines, below) > depth(lines, i); below++) {
          assertFalse(lines.get(below).contains("[[lineitem]]"), () -> String.join("\n", lines));
        }
      }
    }
  }

  private static int depth(List<String> lines, int line) {
    return lines.get(line).length() - lines.get(line).stripLeading().length();
  }

  @Test
  void aSmallTableIsSentToEverybodyAndLargeOnesByKey() {
    assertEquals(1, count("[broadcast]", "select count(*) from customer, nation where c_nationkey = n_nationkey"));
    String large = "select count(*) from orders, lineitem where o_orderkey = l_orderkey";
    assertEquals(0, count("[broadcast]", large));
    assertEquals(2, count("distribution=[hash[0]]", large));
  }

  /** On 6 nodes with 40 workers each a row of a broadcast travels to 5 others, or to 239. */
  @Test
  void aTableIsSentToEverybodyIfItIsMoreTimesSmallerThanThereAreOtherNodes() {
    String tenTimesSmaller = "select count(*) from orders, customer where o_custkey = c_custkey";
    for (int copies : new int[] {6, 10}) {
      List<String> plan = plan(tenTimesSmaller, copies);
      assertTrue(plan.contains("        Exchange(distribution=[broadcast], delivery=[replicate], stage=[0])"), plan.toString());
      assertEquals(2, exchanges(plan).size(), plan.toString());
    }
    for (int copies : new int[] {11, 240}) {
      List<String> plan = plan(tenTimesSmaller, copies);
      assertEquals(3, exchanges(plan).size(), plan.toString());
      exchanges(plan).forEach(line -> assertTrue(line.contains("delivery=[worker]"), plan.toString()));
    }
  }

  private static List<String> exchanges(List<String> plan) {
    return plan.stream().filter(line -> line.contains("Exchange(")).toList();
  }

  @Test
  void groupsThatLieTogetherAreNotMoved() {
    String joined = "from orders, lineitem where o_orderkey = l_orderkey group by l_orderkey";
    assertEquals(3, count("Exchange", "select l_orderkey, max(o_totalprice), count(*) " + joined));
    assertEquals(4, count("Exchange", "select l_suppkey, count(*) " + joined.replace("by l_orderkey", "by l_suppkey")));
  }

  @Test
  void rowsThatChangeWorkersForTheirGroupsAreGroupedOnTheirWay() {
    assertEquals(
        List.of(
            "Exchange(distribution=[single], delivery=[worker], stage=[1])",
            "  GroupBy(group=[{0}], EXPR$1=[COUNT()], EXPR$2=[MAX($1)], stage=[0])"),
        planOfFaro("select o_custkey, count(*), max(o_totalprice) from orders group by o_custkey").subList(0, 2));
    assertEquals(1, groupBys("select o_custkey, avg(o_totalprice), sum(o_shippriority), any_value(o_clerk) from orders group by o_custkey"));
  }

  @Test
  void calciteGroupsWhatDoesNotChangeWorkersAndWhatFaroHasNoFunctionFor() {
    assertEquals(0, groupBys("select count(*), sum(o_totalprice) from orders"), "one group");
    assertEquals(
        0,
        groupBys("select l_orderkey, count(*) from orders, lineitem where o_orderkey = l_orderkey group by l_orderkey"),
        "the groups lie together");
    assertEquals(0, groupBys("select n_regionkey, count(*) from (select * from nation limit 5) as five group by n_regionkey"));
    assertEquals(0, groupBys("select o_custkey, count(*) filter (where o_shippriority = 1) from orders group by o_custkey"));
    assertEquals(0, groupBys("select o_custkey, single_value(o_clerk) from orders group by o_custkey"));
    assertEquals(0, groupBys("select o_custkey, count(null) from orders group by o_custkey"), "it cannot travel");
  }

  private static long groupBys(String sql) {
    return planOfFaro(sql).stream().filter(line -> line.contains("GroupBy(")).count();
  }

  private static List<String> planOfFaro(String sql) {
    return plan(sql, NODES, Operators.FARO);
  }

  private static long count(String part, String sql) {
    return plan(sql).stream().filter(line -> line.contains(part)).count();
  }

  @Test
  void whatIsMissingIsNamed() {
    assertThrowsWith("GROUPING SETS", "select count(*) from nation group by cube (n_name, n_regionkey)");
    assertThrowsWith("LogicalMinus", "select n_name from nation except select r_name from region");
    assertThrowsWith("cannot be shuffled", "select array[n_name] from nation");
    assertThrowsWith("no timestamp", "select timestamp('yesterday') from nation");
    assertThrowsWith(
        "within-distinct",
        "select o_custkey, sum(o_totalprice) within distinct (o_clerk) from orders group by o_custkey");
  }

  private static void assertThrowsWith(String part, String sql) {
    for (Operators operators : Operators.values()) {
      SqlException thrown = assertThrows(SqlException.class, () -> plan(sql, NODES, operators));
      assertTrue(thrown.getMessage().contains(part), thrown.getMessage());
    }
  }
}
