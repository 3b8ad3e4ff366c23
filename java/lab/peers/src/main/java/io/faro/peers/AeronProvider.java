package io.faro.peers;

import io.faro.bench.Carriage;
import io.faro.bench.CarriageProvider;
import io.faro.bench.Options;

/** {@code --transport aeron-ipc} and {@code aeron-udp}. */
public final class AeronProvider implements CarriageProvider {
  @Override
  public Carriage open(Options options) {
    return switch (options.transport()) {
      case "aeron-ipc" -> new AeronCarriage(options, AeronChannels.ipc());
      case "aeron-udp" -> new AeronCarriage(options, AeronChannels.udp(options));
      default -> null;
    };
  }
}
