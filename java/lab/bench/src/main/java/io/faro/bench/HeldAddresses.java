package io.faro.bench;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;
import java.util.StringJoiner;

/**
 * Addresses that the system gives to nobody else until this is closed: sockets are bound to them, and do not listen. A
 * node that listens there, with SO_REUSEADDR as Java and Faro do, may; a connection that another node dials in the
 * meantime is not given such a port for its own end.
 */
final class HeldAddresses implements AutoCloseable {
  private final List<Socket> sockets = new ArrayList<>();
  private final String nodes;

  /** Two ports in a row per node: node 0 uses the second one, too. The nodes take turns on the hosts. */
  HeldAddresses(int count, List<String> hosts) throws IOException {
    StringJoiner text = new StringJoiner(",");
    try {
      for (int found = 0; found < count; ) {
        String host = hosts.get(found % hosts.size());
        Socket first = bind(new InetSocketAddress(InetAddress.getByName(host), 0));
        try {
          bind(new InetSocketAddress(first.getLocalAddress(), first.getLocalPort() + 1));
        } catch (IOException taken) {
          continue;
        }
        text.add(host + ":" + first.getLocalPort());
        found++;
      }
    } catch (IOException | RuntimeException failed) {
      close();
      throw failed;
    }
    nodes = text.toString();
  }

  private Socket bind(InetSocketAddress address) throws IOException {
    Socket socket = new Socket();
    sockets.add(socket);
    socket.setReuseAddress(true);
    socket.bind(address);
    return socket;
  }

  /** Host and port of each, with commas between. */
  String nodes() {
    return nodes;
  }

  @Override
  public void close() {
    for (Socket socket : sockets) {
      try {
        socket.close();
      } catch (IOException ignored) {
        // It was never connected.
      }
    }
  }
}
