package io.faro.bench;

import java.io.IOException;
import java.util.ServiceLoader;

/**
 * A backend outside of this module, found in the class path by {@link ServiceLoader}: {@code
 * java/lab/peers} has some to compare Faro with.
 */
public interface BackendProvider {
  /** Opens the {@link Backend}; null if it is not the one that {@link Options#transport} names. */
  Backend open(Options options) throws IOException;

  /** Errors: IllegalArgumentException if there is none of that name. */
  static Backend find(Options options) throws IOException {
    for (BackendProvider provider : ServiceLoader.load(BackendProvider.class)) {
      Backend found = provider.open(options);
      if (found != null) {
        return found;
      }
    }
    throw new IllegalArgumentException("no transport " + options.transport());
  }
}
