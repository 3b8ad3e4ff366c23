package io.faro.sql.sockets;

import io.faro.Session;
import io.faro.sockets.SocketsSettings;
import java.time.Duration;
import java.util.List;

/**
 * What all nodes' sockets have in common.
 *
 * @param nodes host:port at which each node listens
 * @param rowLimitBytes the session's {@code row.limit_bytes}
 * @param connectLimit how long connecting may take
 * @param causeLimit how long the cause of a connection's end may take to get about, before the end itself is told
 * @param checkMs how late a sleeping worker hears that its query has failed
 */
public record CarrierSettings(
    List<String> nodes, int rowLimitBytes, Duration connectLimit, Duration causeLimit, int checkMs) {
  private static final Duration CAUSE_LIMIT = Duration.ofSeconds(10); // Faro's liveness.timeout_ms
  private static final int CHECK_MS = 20;

  /** With the usual time limits beyond connecting. */
  public CarrierSettings(List<String> nodes, int rowLimitBytes, Duration connectLimit) {
    this(nodes, rowLimitBytes, connectLimit, CAUSE_LIMIT, CHECK_MS);
  }

  /**
   * The settings of a node. A worker that waits sleeps at once, as over Faro in this engine: there
   * may be more workers than processors.
   */
  SocketsSettings of(Session session) {
    int workers = session.workers().size();
    return new SocketsSettings(nodes, session.node(), workers, rowLimitBytes, false, connectLimit, 0, checkMs);
  }
}
