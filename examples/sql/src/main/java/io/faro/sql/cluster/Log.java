package io.faro.sql.cluster;

import java.util.logging.Level;
import java.util.logging.Logger;

/** What Faro logs, in the processes of the shell. */
public final class Log {
  private static final Logger FARO = Logger.getLogger("io.faro"); // kept: loggers nobody refers to are forgotten

  private Log() {}

  /** Failed queries and lost nodes are told by the shell; what is worse is still logged. */
  public static void quiet() {
    FARO.setLevel(Level.SEVERE);
  }
}
