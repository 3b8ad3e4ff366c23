package io.faro.sql.cluster;

import io.faro.SessionConfig;
import io.faro.Setting;
import io.faro.sql.SqlException;
import io.faro.sql.exec.Carrier;
import io.faro.sql.plan.Operators;
import io.faro.sql.plan.Planner;
import io.faro.sql.tables.CsvTables;
import io.faro.sql.tables.Table;
import io.faro.sql.tables.Tpcc;
import io.faro.sql.tables.TpccQueries;
import io.faro.sql.tables.Tpch;
import io.faro.sql.tables.TpchQueries;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import picocli.CommandLine.Option;

/** What describes a cluster and its data, to the shell and to each of its nodes. */
public final class ClusterOptions {
  /**
   * What holds unless the environment or {@code --set} says otherwise. All nodes are on this
   * machine, with more workers than it has processors perhaps: one that waits sleeps at once, and
   * rings hold what a worker sends while another one runs. Broadcasts need lanes that end at nodes,
   * all other exchanges do best with some that end at workers. The limits are those of Faro;
   * sockets read them, too ({@link Carriers}).
   */
  private static final Map<Setting, String> DEFAULTS =
      new EnumMap<>(
          Map.of(
              Setting.RING_BYTES, "256KiB",
              Setting.LANE_ENDS, "both",
              Setting.WAIT_YIELDS, "0",
              Setting.ROW_LIMIT_BYTES, Setting.ROW_LIMIT_BYTES.defaultValue(),
              Setting.CONNECT_TIMEOUT_MS, Setting.CONNECT_TIMEOUT_MS.defaultValue()));

  @Option(names = "--nodes", paramLabel = "N", description = "processes, this one included (${DEFAULT-VALUE})")
  private int nodes = 2;

  @Option(names = "--workers", paramLabel = "N", description = "workers of each node (${DEFAULT-VALUE})")
  private int workers = 2;

  @Option(
      names = "--data",
      paramLabel = "tpch|tpcc|FOLDER",
      description = "generated tables, or those of a folder of CSV files (${DEFAULT-VALUE})")
  private String data = "tpch";

  @Option(
      names = "--scale",
      paramLabel = "N",
      description = "of generated tables: TPC-H's scale factor, warehouses of TPC-C (${DEFAULT-VALUE})")
  private double scale = 0.01;

  @Option(
      names = "--transport",
      paramLabel = "auto|shm|tcp|verbs",
      description = "between nodes (${DEFAULT-VALUE})")
  private String transport = "auto";

  @Option(
      names = "--host",
      split = ",",
      paramLabel = "HOST[,...]",
      description = "numeric addresses of this machine, on which the nodes take turns to listen (${DEFAULT-VALUE})")
  private List<String> hosts = List.of(Addresses.HOST);

  @Option(
      names = "--carrier",
      paramLabel = "faro|sockets",
      description = "what carries rows between workers: Faro, or sockets to compare with (${DEFAULT-VALUE})")
  private String carrier = Carriers.FARO;

  @Option(
      names = "--operators",
      paramLabel = "faro|calcite",
      description = "what groups rows: Faro's aggregations, or Calcite's operators (faro, over sockets calcite)")
  private String operators;

  @Option(
      names = "--set",
      paramLabel = "SETTING=VALUE",
      description = "any setting of Faro's sessions, as `faro config` prints them")
  private Map<String, String> settings = new LinkedHashMap<>();

  public int nodes() {
    return nodes;
  }

  int workers() {
    return workers;
  }

  /** Where nodes listen: they take turns. */
  public List<String> hosts() {
    return hosts;
  }

  /** The tables; parts of them are made when they are first read. */
  public Map<String, Table> tables() {
    return switch (data) {
      case "tpch" -> Tpch.tables(scale);
      case "tpcc" -> Tpcc.tables(scale);
      default -> CsvTables.of(Path.of(data));
    };
  }

  /** What plans queries of these tables, which every node has. */
  public Planner planner(Map<String, Table> tables) {
    return new Planner(tables, isOverFaro() ? nodes : nodes * workers, operators());
  }

  private Operators operators() {
    if (operators == null) {
      return isOverFaro() ? Operators.FARO : Operators.CALCITE;
    }
    return switch (operators) {
      case "calcite" -> Operators.CALCITE;
      case "faro" -> {
        if (!isOverFaro()) {
          throw new SqlException("the operators of faro send their rows over faro, not over " + carrier, null);
        }
        yield Operators.FARO;
      }
      default -> throw new SqlException("no operators '" + operators + "': faro or calcite", null);
    };
  }

  /** The queries that belong to the tables, by name; none for those of a folder. */
  public Map<String, String> queries() {
    return switch (data) {
      case "tpch" -> TpchQueries.ALL;
      case "tpcc" -> TpccQueries.ALL;
      default -> Map.of();
    };
  }

  /** The configuration of one node. */
  public SessionConfig config(int node, List<String> addresses) {
    return config(node, addresses, System.getenv());
  }

  /** {@code environment}: variables by name. */
  SessionConfig config(int node, List<String> addresses, Map<String, String> environment) {
    SessionConfig.Builder config =
        SessionConfig.builder()
            .environment()
            .cluster(node, addresses)
            .workers(workers)
            .set(Setting.TRANSPORT, transport);
    DEFAULTS.forEach((setting, value) -> config.set(setting, environment.getOrDefault(variable(setting), value)));
    settings.forEach((key, value) -> config.set(setting(key), value));
    return config.build();
  }

  /**
   * What opens the carrier of one node.
   *
   * @param sockets where each node listens if rows go over sockets
   */
  public Carrier.Opener carrier(SessionConfig config, List<String> sockets) {
    return Carriers.of(carrier, config, sockets);
  }

  public boolean isOverFaro() {
    return carrier.equals(Carriers.FARO);
  }

  private static String variable(Setting setting) {
    return "FARO_" + setting.key().toUpperCase(Locale.ROOT).replace('.', '_');
  }

  private static Setting setting(String key) {
    return Arrays.stream(Setting.values())
        .filter(setting -> setting.key().equals(key))
        .findFirst()
        .orElseThrow(() -> new SqlException("Faro has no setting " + key, null));
  }

  /** These options as a command line. */
  List<String> arguments() {
    List<String> arguments =
        new ArrayList<>(
            List.of(
                "--nodes=" + nodes, "--workers=" + workers, "--data=" + data, "--scale=" + scale,
                "--transport=" + transport, "--carrier=" + carrier));
    if (operators != null) {
      arguments.add("--operators=" + operators);
    }
    settings.forEach((key, value) -> arguments.add("--set=" + key + "=" + value));
    return arguments;
  }
}
