package io.faro;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * The settings of one node: what differs from the defaults. Immutable. Checked, as a whole, when a
 * session is opened with it.
 */
public final class SessionConfig {
  private final Map<Setting, String> values;
  private final boolean environment;

  private SessionConfig(Builder builder) {
    values = new EnumMap<>(builder.values);
    environment = builder.environment;
  }

  /** A builder in which every setting has its default. */
  public static Builder builder() {
    return new Builder();
  }

  /** The value as text: what was set, or the default. The environment is not looked at. */
  public String get(Setting setting) {
    return values.getOrDefault(setting, setting.defaultValue());
  }

  boolean usesEnvironment() {
    return environment;
  }

  /** The same with another value. */
  SessionConfig with(Setting setting, String value) {
    Builder builder = new Builder();
    builder.values.putAll(values);
    builder.environment = environment;
    return builder.set(setting, value).build();
  }

  /** Name, NUL, value, NUL, and so on. */
  byte[] encoded() {
    StringBuilder text = new StringBuilder();
    values.forEach((setting, value) -> text.append(setting.key()).append('\0').append(value).append('\0'));
    return text.toString().getBytes(UTF_8);
  }

  /** Collects settings. Not thread-safe. */
  public static final class Builder {
    private final Map<Setting, String> values = new EnumMap<>(Setting.class);
    private boolean environment;

    private Builder() {}

    /** Sets one setting from text: numbers in decimal digits, bytes also with KiB, MiB or GiB. */
    public Builder set(Setting setting, String value) {
      Objects.requireNonNull(setting, "setting");
      if (Objects.requireNonNull(value, setting.key()).indexOf('\0') >= 0) {
        throw new FaroException(Code.CONFIG_INVALID, setting.key() + " has a NUL character");
      }
      values.put(setting, value);
      return this;
    }

    /** Sets a numeric setting, in its own unit. */
    public Builder set(Setting setting, long value) {
      return set(setting, Long.toString(value));
    }

    /** This node's number, and host:port of all nodes in the order of their numbers. */
    public Builder cluster(int node, List<String> nodes) {
      String joined = String.join(",", List.copyOf(nodes)); // none of them is null
      return set(Setting.CLUSTER_NODE, node).set(Setting.CLUSTER_NODES, joined);
    }

    /** Workers of each node. */
    public Builder workers(int workersPerNode) {
      return set(Setting.CLUSTER_WORKERS, workersPerNode);
    }

    /** Takes the FARO_… environment variables, too; what was set here wins. */
    public Builder environment() {
      environment = true;
      return this;
    }

    /** The configuration as it stands. */
    public SessionConfig build() {
      return new SessionConfig(this);
    }
  }

  /** One line per setting: name, tab, default, tab, help. */
  static native byte[] table();

  /** One line per code: number, tab, name, tab, category. */
  static native byte[] codes();

  /** One line per constant of other enums that cross the boundary: enum, tab, number, tab, name. */
  static native byte[] constants();
}
