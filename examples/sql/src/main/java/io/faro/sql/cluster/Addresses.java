package io.faro.sql.cluster;

import io.faro.sql.SqlException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.ArrayList;
import java.util.List;

/** Where nodes on this machine can listen. */
public final class Addresses {
  /** Where they listen unless somebody says otherwise. */
  static final String HOST = "127.0.0.1";

  private Addresses() {}

  /** As many addresses as asked for, at which nobody listens now; the hosts, numeric addresses of this machine, take turns. */
  public static List<String> free(int count, List<String> hosts) {
    List<ServerSocket> held = new ArrayList<>();
    List<String> addresses = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      String host = hosts.get(i % hosts.size());
      try {
        ServerSocket socket = new ServerSocket(0, 1, InetAddress.getByName(host));
        held.add(socket);
        addresses.add((host.contains(":") ? "[" + host + "]" : host) + ":" + socket.getLocalPort());
      } catch (IOException e) {
        held.forEach(Addresses::close);
        throw new SqlException("no node can listen on host " + host + ": " + e.getMessage(), e);
      }
    }
    held.forEach(Addresses::close);
    return addresses;
  }

  private static void close(ServerSocket socket) {
    try {
      socket.close();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
