package io.faro.flink;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.Arrays;
import org.apache.flink.runtime.util.EnvironmentInformation;

/**
 * What a consumer says of itself when it dials: which messages it speaks, and of which Flink. Both
 * have to be the same.
 */
final class Greeting {
  /** The version of {@link MessageHeader}; it goes up when that changes. */
  private static final int VERSION = 1;

  private static final String OWN =
      "faro-flink " + VERSION + ", Flink " + EnvironmentInformation.getVersion();

  private Greeting() {}

  static byte[] bytes() {
    return OWN.getBytes(UTF_8);
  }

  /** Why a peer with that greeting is refused; null: it is not. */
  static String refusal(byte[] greeting) {
    return Arrays.equals(greeting, bytes())
        ? null
        : "this TaskManager speaks " + OWN + ", and the other " + new String(greeting, UTF_8);
  }
}
