package io.faro.sockets;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;

/**
 * Addresses of this machine that the system gives to nobody else until this is closed: sockets are bound to them, and do
 * not listen. A node that listens there, with SO_REUSEADDR as Java and Faro do, may; a connection that another node dials
 * in the meantime is not given such a port for its own end.
 */
public final class HeldAddresses implements AutoCloseable {
  private final List<Socket> sockets = new ArrayList<>();
  private final List<String> addresses = new ArrayList<>();

  /**
   * As many as {@code count}; the hosts, numeric addresses of this machine, take turns.
   *
   * @param ports how many ports in a row are held at each, from the one in its address on
   * @throws IOException if nobody can listen on one of the hosts; it says on which
   */
  public HeldAddresses(int count, int ports, List<String> hosts) throws IOException {
    while (addresses.size() < count) {
      String host = hosts.get(addresses.size() % hosts.size());
      try {
        int first = bind(host, 0);
        if (holdsNext(host, first, ports - 1)) {
          addresses.add((host.contains(":") ? "[" + host + "]" : host) + ":" + first);
        }
      } catch (IOException problem) {
        close();
        throw new IOException("no node can listen on host " + host + ": " + problem.getMessage(), problem);
      }
    }
  }

  /** False: one of those ports is taken. */
  private boolean holdsNext(String host, int port, int count) {
    try {
      for (int next = 1; next <= count; next++) {
        bind(host, port + next);
      }
      return true;
    } catch (IOException | IllegalArgumentException taken) {
      return false;
    }
  }

  /** The port. */
  private int bind(String host, int port) throws IOException {
    Socket socket = new Socket();
    sockets.add(socket);
    socket.setReuseAddress(true);
    socket.bind(new InetSocketAddress(InetAddress.getByName(host), port));
    return socket.getLocalPort();
  }

  /** host:port of each. */
  public List<String> all() {
    return addresses;
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
