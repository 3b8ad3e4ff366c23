package io.faro.sql.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.faro.SessionConfig;
import io.faro.Setting;
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

  private static SessionConfig config(Map<String, String> environment, String... arguments) {
    ClusterOptions options = CommandLine.populateCommand(new ClusterOptions(), arguments);
    return options.config(0, List.of("127.0.0.1:1"), environment);
  }

  @Test
  void theEnvironmentWinsOverTheEnginesDefaultsAndTheCommandLineOverBoth() {
    SessionConfig usual = config(Map.of());
    assertEquals("256KiB", usual.get(Setting.RING_BYTES));
    assertEquals("0", usual.get(Setting.WAIT_YIELDS));
    assertEquals(Setting.ROW_LIMIT_BYTES.defaultValue(), usual.get(Setting.ROW_LIMIT_BYTES));
    SessionConfig told = config(ENVIRONMENT, "--set=wait.yields=3");
    assertEquals("1MiB", told.get(Setting.RING_BYTES));
    assertEquals("3", told.get(Setting.WAIT_YIELDS));
  }

  /** Sockets ask the configuration for them, which does not look at the environment by itself. */
  @Test
  void limitsOfTheEnvironmentAreInTheConfigurationThatSocketsRead() {
    SessionConfig told = config(ENVIRONMENT);
    assertEquals("2KiB", told.get(Setting.ROW_LIMIT_BYTES));
    assertEquals("1234", told.get(Setting.CONNECT_TIMEOUT_MS));
  }
}
