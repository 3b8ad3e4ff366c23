package io.faro.flink;

import io.faro.Code;
import io.faro.FaroException;
import java.io.IOException;
import java.net.InetSocketAddress;
import org.apache.flink.runtime.io.network.ConnectionID;
import org.apache.flink.runtime.io.network.netty.exception.RemoteTransportException;

/** A TaskManager that data is requested from, as messages name it. Threads: any; immutable. */
record Peer(InetSocketAddress address, String resource) {
  static Peer of(ConnectionID connection) {
    return new Peer(connection.getAddress(), connection.getResourceID().getStringWithMetadata());
  }

  /** host:port, as Faro takes it. */
  String dialled() {
    String host =
        address.isUnresolved() ? address.getHostString() : address.getAddress().getHostAddress();
    return (host.indexOf(':') >= 0 ? "[" + host + "]" : host) + ":" + address.getPort();
  }

  /** Why there is no link to it. */
  IOException unreachable(FaroException cause) {
    if (cause == null) {
      return unreachable(Code.CLOSED + "", null);
    }
    String why = cause.code() + ": " + OptionNames.inFlinksKeys(cause.getMessage());
    boolean isOfMemory =
        cause.code() == Code.RESOURCE_LIMIT && why.contains(FaroOptions.MEMORY_LIMIT.key());
    return unreachable(
        isOfMemory
            ? why + ". With a larger " + FaroOptions.MEMORY_LIMIT.key() + " more links fit."
            : why,
        cause);
  }

  IOException unreachable(String why, Throwable cause) {
    return new RemoteTransportException(
        "Connecting to " + this
            + " has failed. This might indicate that the remote task manager has been lost. " + why,
        address,
        cause);
  }

  /** {@code remote task manager '10.0.0.2:6121 [ tm-2 ]'} */
  @Override
  public String toString() {
    return "remote task manager '" + dialled() + " [ " + resource + " ]'";
  }
}
