package io.faro.sockets;

import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.List;

/**
 * What a node's sockets are told.
 *
 * @param nodes host:port at which each node listens
 * @param node this one
 * @param workers of every node
 * @param rowLimitBytes of the longest row
 * @param writesEachRow as the paper's form does; else rows gather until a buffer is full or the worker waits
 * @param connectLimit how long connecting may take
 * @param yields how often a worker with nothing to do yields its processor before it sleeps
 * @param checkMs how late a sleeping worker hears that its query has failed
 */
public record SocketsSettings(
    List<String> nodes,
    int node,
    int workers,
    int rowLimitBytes,
    boolean writesEachRow,
    Duration connectLimit,
    int yields,
    int checkMs) {

  /** The first worker of this node; those of a node follow each other. */
  int firstWorker() {
    return node * workers;
  }

  int workerCount() {
    return nodes.size() * workers;
  }

  InetSocketAddress address(int of) {
    String text = nodes.get(of);
    int colon = text.lastIndexOf(':');
    return new InetSocketAddress(text.substring(0, colon), Integer.parseInt(text.substring(colon + 1)));
  }

  /**
   * The bytes of a row.
   *
   * @throws IllegalArgumentException if these are too many, as with Faro
   */
  public int checkedRow(int stage, int bytes) {
    if (bytes > rowLimitBytes) {
      throw new IllegalArgumentException(
          "stage " + stage + ": a row of " + bytes + " bytes is above row.limit_bytes = " + rowLimitBytes);
    }
    return bytes;
  }
}
