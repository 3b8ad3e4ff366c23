package io.faro.sql.cluster;

import io.faro.sql.SqlException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;

/**
 * Where nodes on this machine can listen, each at one address. The system gives these ports to nobody else until this is
 * closed: sockets are bound to them, and do not listen. Nodes that listen there, with SO_REUSEADDR, may.
 */
public final class Addresses implements AutoCloseable {
  /** Where they listen unless somebody says otherwise. */
  static final String HOST = "127.0.0.1";

  private final List<Socket> sockets = new ArrayList<>();
  private final List<String> addresses = new ArrayList<>();

  /** As many addresses as asked for; the hosts, numeric addresses of this machine, take turns. */
  public Addresses(int count, List<String> hosts) {
    for (int i = 0; i < count; i++) {
      String host = hosts.get(i % hosts.size());
      Socket socket = new Socket();
      sockets.add(socket);
      try {
        socket.setReuseAddress(true);
        socket.bind(new InetSocketAddress(InetAddress.getByName(host), 0));
      } catch (IOException e) {
        close();
        throw new SqlException("no node can listen on host " + host + ": " + e.getMessage(), e);
      }
      addresses.add((host.contains(":") ? "[" + host + "]" : host) + ":" + socket.getLocalPort());
    }
  }

  /** host:port of each from {@code begin} on, as many as asked for. */
  public List<String> of(int begin, int count) {
    return addresses.subList(begin, begin + count);
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
