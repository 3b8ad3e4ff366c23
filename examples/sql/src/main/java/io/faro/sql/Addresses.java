package io.faro.sql;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.ArrayList;
import java.util.List;

/** Where nodes on this machine can listen. */
final class Addresses {
  private Addresses() {}

  /** So many addresses at which nobody listens now. */
  static List<String> free(int count) {
    List<ServerSocket> held = new ArrayList<>();
    List<String> addresses = new ArrayList<>();
    try {
      for (int i = 0; i < count; i++) {
        held.add(new ServerSocket(0, 1, InetAddress.getLoopbackAddress()));
        addresses.add("127.0.0.1:" + held.get(i).getLocalPort());
      }
      for (ServerSocket socket : held) {
        socket.close();
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return addresses;
  }
}
