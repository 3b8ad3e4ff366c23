package io.faro;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/** A network of two hosts: this one, and a network namespace. Takes root, as making one does; a test without it is skipped. */
final class Cable implements AutoCloseable {
  private static final String PORT = ":7100";

  private final String name = "faro" + ProcessHandle.current().pid();
  private final String net = "10.203." + ProcessHandle.current().pid() % 250 + ".";

  static Cable lay() {
    Cable cable = new Cable();
    assumeTrue(ip("netns", "add", cable.name), "this system permits no network namespace, or has no `ip`");
    try {
      assumeTrue(
          ip("link", "add", cable.name, "type", "veth", "peer", "name", "eth0", "netns", cable.name),
          "this system permits no veth device");
      cable.must("addr", "add", cable.net + "1/24", "dev", cable.name);
      cable.must("link", "set", cable.name, "up");
      cable.must("-n", cable.name, "addr", "add", cable.net + "2/24", "dev", "eth0");
      cable.must("-n", cable.name, "link", "set", "eth0", "up");
    } catch (RuntimeException problem) {
      cable.close();
      throw problem;
    }
    return cable;
  }

  /** The addresses of node 0, on this side, and of node 1, beyond the cable. */
  List<String> addresses() {
    return List.of(net + "1" + PORT, net + "2" + PORT);
  }

  /** What a command that is to run beyond the cable begins with. */
  List<String> beyond() {
    return List.of("ip", "netns", "exec", name);
  }

  void pull() {
    must("link", "set", name, "down");
  }

  @Override
  public void close() {
    ip("link", "delete", name);
    ip("netns", "delete", name);
  }

  private void must(String... arguments) {
    if (!ip(arguments)) {
      throw new IllegalStateException("failed: ip " + String.join(" ", arguments));
    }
  }

  private static boolean ip(String... arguments) {
    List<String> command = new ArrayList<>(List.of("ip"));
    command.addAll(List.of(arguments));
    try {
      return new ProcessBuilder(command)
              .redirectErrorStream(true)
              .redirectOutput(ProcessBuilder.Redirect.DISCARD)
              .start()
              .waitFor()
          == 0;
    } catch (IOException noSuchCommand) {
      return false;
    } catch (InterruptedException interrupted) {
      throw new IllegalStateException(interrupted);
    }
  }
}
