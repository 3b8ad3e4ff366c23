package io.faro.sql.cluster;

import io.faro.SessionConfig;
import io.faro.Setting;
import io.faro.sql.SqlException;
import io.faro.sql.exec.Carrier;
import io.faro.sql.exec.FaroCarrier;
import io.faro.sql.sockets.CarrierSettings;
import io.faro.sql.sockets.SocketsCarrier;
import java.time.Duration;
import java.util.List;

/** Carriers by their names on the command line. */
final class Carriers {
  static final String FARO = "faro";
  static final String SOCKETS = "sockets";

  private Carriers() {}

  /**
   * That of one node.
   *
   * @param config of its session; what it says about rows and time limits goes for sockets, too (what only the
   *     environment says is not in it)
   * @param sockets host:port at which each node listens if rows go over sockets
   * @throws SqlException if there is none of this name
   */
  static Carrier.Opener of(String name, SessionConfig config, List<String> sockets) {
    return switch (name) {
      case FARO -> session -> new FaroCarrier();
      case SOCKETS -> session -> SocketsCarrier.open(session, settings(config, sockets));
      default -> throw new SqlException("no carrier '" + name + "': faro or sockets", null);
    };
  }

  /** The settings of a configuration that a session was opened with, which has checked it. */
  private static CarrierSettings settings(SessionConfig config, List<String> sockets) {
    int rowLimit = bytes(config.get(Setting.ROW_LIMIT_BYTES));
    Duration limit = Duration.ofMillis(Long.parseLong(config.get(Setting.CONNECT_TIMEOUT_MS)));
    return new CarrierSettings(sockets, rowLimit, limit);
  }

  /** A number of bytes as settings have it: digits, and perhaps a unit. */
  private static int bytes(String text) {
    String digits = text.replaceAll("\\D", "");
    int shift =
        switch (text.substring(digits.length())) {
          case "KiB" -> 10;
          case "MiB" -> 20;
          case "GiB" -> 30;
          default -> 0;
        };
    return Math.toIntExact(Long.parseLong(digits) << shift);
  }
}
