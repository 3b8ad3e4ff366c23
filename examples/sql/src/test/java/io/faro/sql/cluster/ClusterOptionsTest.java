package io.faro.sql.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.SessionConfig;
import io.faro.Setting;
import io.faro.sql.SqlException;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;

/** Whose value of a setting holds. */
class ClusterOptionsTest {
  private static final Map<String, String> ENVIRONMENT =
      Map.of(
          "FARO_RING_BYTES", "1MiB",
          "FARO_WAIT_YIELDS", "7",
          "FARO_ROW_LIMIT_BYTES", "2KiB",
          "FARO_CONNECT_TIMEOUT_MS", "1234");

  private static ClusterOptions options(String... arguments) {
    return CommandLine.populateCommand(new ClusterOptions(), arguments);
  }

  private static SessionConfig config(Map<String, String> environment, String... arguments) {
    return options(arguments).config(0, List.of("127.0.0.1:1"), environment);
  }

  @Test
  void theEnvironmentWinsOverTheEnginesDefaultsAndTheCommandLineOverBoth() {
    SessionConfig usual = config(Map.of());
    assertEquals("256KiB", usual.get(Setting.RING_BYTES));
    assertEquals("0", usual.get(Setting.WAIT_YIELDS));
    assertEquals("both", usual.get(Setting.LANE_ENDS));
    assertEquals(Setting.ROW_LIMIT_BYTES.defaultValue(), usual.get(Setting.ROW_LIMIT_BYTES));
    SessionConfig told = config(ENVIRONMENT, "--set=wait.yields=3");
    assertEquals("1MiB", told.get(Setting.RING_BYTES));
    assertEquals("3", told.get(Setting.WAIT_YIELDS));
  }

  /** Sockets carry it to each worker. */
  @Test
  void aBroadcastTravelsOnceToEachNodeOverFaroAsThePlannerKnows() {
    assertTrue(isBroadcast("faro"));
    assertFalse(isBroadcast("sockets"));
  }

  @Test
  void faroGroupsRowsThatGoOverFaroUnlessToldOtherwise() {
    assertTrue(isGroupedByFaro());
    assertTrue(isGroupedByFaro("--operators=faro"));
    assertFalse(isGroupedByFaro("--operators=calcite"));
    assertFalse(isGroupedByFaro("--carrier=sockets"));
    assertTrue(options("--operators=calcite").arguments().contains("--operators=calcite")); // to other nodes
    assertEquals(
        "the operators of faro send their rows over faro, not over sockets",
        assertThrows(SqlException.class, () -> isGroupedByFaro("--operators=faro", "--carrier=sockets")).getMessage());
    assertEquals(
        "no operators 'spark': faro or calcite",
        assertThrows(SqlException.class, () -> isGroupedByFaro("--operators=spark")).getMessage());
  }

  private static boolean isGroupedByFaro(String... arguments) {
    ClusterOptions options = options(arguments);
    String sql = "select o_custkey, count(*) from orders group by o_custkey";
    return options.planner(options.tables()).plan(sql).explain().contains("GroupBy(");
  }

  private static boolean isBroadcast(String carrier) {
    ClusterOptions options = options("--nodes=6", "--workers=40", "--scale=1", "--carrier=" + carrier);
    String tenTimesSmaller = "select count(*) from orders, customer where o_custkey = c_custkey";
    return options.planner(options.tables()).plan(tenTimesSmaller).explain().contains("delivery=[replicate]");
  }

  /** Sockets ask the configuration for them, which does not look at the environment by itself. */
  @Test
  void limitsOfTheEnvironmentAreInTheConfigurationThatSocketsRead() {
    SessionConfig told = config(ENVIRONMENT);
    assertEquals("2KiB", told.get(Setting.ROW_LIMIT_BYTES));
    assertEquals("1234", told.get(Setting.CONNECT_TIMEOUT_MS));
  }
}
