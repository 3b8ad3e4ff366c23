package io.faro.peers;

import io.faro.bench.Backend;
import io.faro.bench.BackendProvider;
import io.faro.bench.Options;

/** {@code --transport aeron-ipc} and {@code aeron-udp}. */
public final class AeronProvider implements BackendProvider {
  @Override
  public Backend open(Options options) {
    return switch (options.transport()) {
      case "aeron-ipc" -> new AeronBackend(options, AeronChannels.ipc());
      case "aeron-udp" -> new AeronBackend(options, AeronChannels.udp(options));
      default -> null;
    };
  }
}
