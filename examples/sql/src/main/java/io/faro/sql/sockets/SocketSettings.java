package io.faro.sql.sockets;

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
public record SocketSettings(
    List<String> nodes, int rowLimitBytes, Duration connectLimit, Duration causeLimit, int checkMs) {
  private static final Duration CAUSE_LIMIT = Duration.ofSeconds(10); // Faro's liveness.timeout_ms
  private static final int CHECK_MS = 20;

  /** With the usual time limits beyond connecting. */
  public SocketSettings(List<String> nodes, int rowLimitBytes, Duration connectLimit) {
    this(nodes, rowLimitBytes, connectLimit, CAUSE_LIMIT, CHECK_MS);
  }
}
