package io.faro.bench;

import java.io.IOException;
import java.util.ServiceLoader;

/**
 * Another carrier of the rows, found in the class path by {@link ServiceLoader}: {@code
 * java/lab/peers} has some to compare Faro with.
 */
public interface CarriageProvider {
  /** As {@link Carriage}; null if it is not the one that {@link Options#transport} names. */
  Carriage open(Options options) throws IOException;

  /** Errors: IllegalArgumentException if there is none of that name. */
  static Carriage find(Options options) throws IOException {
    for (CarriageProvider provider : ServiceLoader.load(CarriageProvider.class)) {
      Carriage found = provider.open(options);
      if (found != null) {
        return found;
      }
    }
    throw new IllegalArgumentException("no transport " + options.transport());
  }
}
