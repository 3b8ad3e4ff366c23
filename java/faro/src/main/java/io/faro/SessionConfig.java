package io.faro;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.ByteBuffer;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * The configuration of one node, or of an {@link Endpoint}: the settings that differ from their
 * defaults. Immutable. The values are checked together when a session or an endpoint is opened.
 */
public final class SessionConfig {
  private final Map<Setting, String> values;
  private final Map<Setting, byte[]> bytes;
  private final boolean environment;

  private SessionConfig(Builder builder) {
    values = new EnumMap<>(builder.values);
    bytes = new EnumMap<>(builder.bytes);
    environment = builder.environment;
  }

  /** A builder that starts with the defaults. */
  public static Builder builder() {
    return new Builder();
  }

  /**
   * The value of a setting as text: the one that was set here, or the default, also of one that was
   * given as bytes. Ignores environment variables.
   */
  public String get(Setting setting) {
    Objects.requireNonNull(setting, "setting");
    return values.getOrDefault(setting, setting.defaultValue());
  }

  boolean usesEnvironment() {
    return environment;
  }

  /** A copy with one setting changed. */
  SessionConfig with(Setting setting, String value) {
    Builder builder = new Builder();
    builder.values.putAll(values);
    builder.bytes.putAll(bytes);
    builder.environment = environment;
    return builder.set(setting, value).build();
  }

  /**
   * For native code: each setting as its name, a NUL, its value, a NUL. Those that were given as
   * bytes have a # before their name, and hexadecimal digits as value. To be overwritten after use.
   */
  byte[] encoded() {
    StringBuilder text = new StringBuilder();
    values.forEach(
        (setting, value) -> text.append(setting.key()).append('\0').append(value).append('\0'));
    byte[] texts = text.toString().getBytes(UTF_8);
    int size = texts.length;
    for (Map.Entry<Setting, byte[]> given : bytes.entrySet()) {
      size += given.getKey().key().length() + 2 * given.getValue().length + 3;
    }
    ByteBuffer all = ByteBuffer.allocate(size).put(texts);
    bytes.forEach(
        (setting, given) -> {
          all.put((byte) '#').put(setting.key().getBytes(UTF_8)).put((byte) 0);
          for (byte each : given) {
            all.put((byte) Character.forDigit(each >> 4 & 15, 16))
                .put((byte) Character.forDigit(each & 15, 16));
          }
          all.put((byte) 0);
        });
    return all.array();
  }

  /** The settings that were made, without those given as bytes: they are secrets. */
  @Override
  public String toString() {
    StringBuilder text = new StringBuilder("configuration");
    values.forEach(
        (setting, value) -> text.append(' ').append(setting.key()).append('=').append(value));
    bytes.keySet().forEach(setting -> text.append(' ').append(setting.key()).append("=(bytes)"));
    return text.append(environment ? " and the environment" : "").toString();
  }

  /** Collects settings. Not thread-safe. */
  public static final class Builder {
    private final Map<Setting, String> values = new EnumMap<>(Setting.class);
    private final Map<Setting, byte[]> bytes = new EnumMap<>(Setting.class);
    private boolean environment;

    private Builder() {}

    /** Sets a setting from text. Numbers are decimal; sizes may end with KiB, MiB or GiB. */
    public Builder set(Setting setting, String value) {
      Objects.requireNonNull(setting, "setting");
      if (Objects.requireNonNull(value, setting.key()).indexOf('\0') >= 0) {
        throw new FaroException(Code.CONFIG_INVALID, setting.key() + " has a NUL character");
      }
      values.put(setting, value);
      bytes.remove(setting);
      return this;
    }

    /**
     * Gives what a file would hold instead of its path: for {@link Setting#SECURITY_SECRET_FILE},
     * {@link Setting#SECURITY_CERTIFICATE}, {@link Setting#SECURITY_KEY} and
     * {@link Setting#SECURITY_AUTHORITY}; opening with other settings given like this throws
     * {@link Code#CONFIG_INVALID}. The array is not copied: it must not change before the last
     * session or endpoint has been opened with this configuration; overwrite it then. Native copies
     * are overwritten when what was opened is closed.
     */
    public Builder setBytes(Setting setting, byte[] given) {
      bytes.put(
          Objects.requireNonNull(setting, "setting"), Objects.requireNonNull(given, setting.key()));
      values.remove(setting);
      return this;
    }

    /** Sets a numeric setting, in the unit of that setting. */
    public Builder set(Setting setting, long value) {
      return set(setting, Long.toString(value));
    }

    /**
     * Sets the number of this node and the addresses (host:port) of all nodes, ordered by node
     * number.
     */
    public Builder cluster(int node, List<String> nodes) {
      String joined = String.join(",", Nulls.none(nodes, "nodes"));
      return set(Setting.CLUSTER_NODE, node).set(Setting.CLUSTER_NODES, joined);
    }

    /** Sets the number of workers on each node. */
    public Builder workers(int workersPerNode) {
      return set(Setting.CLUSTER_WORKERS, workersPerNode);
    }

    /**
     * Also reads the FARO_… environment variables. Settings made on this builder take precedence.
     */
    public Builder environment() {
      environment = true;
      return this;
    }

    /** Builds the configuration. The builder can be used again. */
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
