package io.faro.flink;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.faro.ChannelSpec;
import io.faro.Endpoint;
import io.faro.FaroException;
import io.faro.SessionConfig;
import io.faro.Setting;
import java.io.IOException;
import java.io.InputStream;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.time.Duration;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.function.LongSupplier;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.IllegalConfigurationException;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.NettyShuffleEnvironmentOptions;
import org.apache.flink.configuration.TaskManagerOptions;
import org.apache.flink.runtime.io.network.netty.NettyConfig;
import org.apache.flink.util.NetUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What Flink's configuration says, for Faro. All is checked when it is made.
 *
 * <p>Threads: any; immutable, except {@link #close}.
 */
final class FlinkSettings implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(FlinkSettings.class);
  private static final int THREAD_LIMIT = 64;
  private static final Duration DEFAULT_CONNECT_TIMEOUT = Duration.ofSeconds(30);

  private final Configuration configuration;
  private final String host;
  private final String ports;
  private final int ioThreads;
  private final int linksPerPeer;
  private final int retries;
  private final boolean reused;
  private final List<LinkRings> sizes;
  private final TlsMaterial tls; // null: no TLS
  private final byte[] secret; // null: none, or in a file

  /**
   * @param netty what Flink has made of the configuration for its own shuffle service
   * @param reused {@code taskmanager.network.tcp-connection.enable-reuse-across-jobs}
   * @throws IllegalConfigurationException if something cannot be as it says
   */
  FlinkSettings(
      Configuration configuration,
      NettyConfig netty,
      InetAddress bindHost,
      int slots,
      boolean reused) {
    OptionNames.check(configuration);
    this.configuration = configuration;
    this.reused = reused;
    host =
        bindHost instanceof Inet6Address
            ? "[" + bindHost.getHostAddress() + "]"
            : bindHost.getHostAddress();
    ports =
        configuration
            .getOptional(NettyShuffleEnvironmentOptions.DATA_BIND_PORT)
            .orElseGet(
                () -> String.valueOf(configuration.get(NettyShuffleEnvironmentOptions.DATA_PORT)));
    ioThreads =
        within(
            FaroOptions.IO_THREADS.key(),
            configuration.getOptional(FaroOptions.IO_THREADS),
            Math.min(2, slots));
    linksPerPeer =
        within(
            FaroOptions.LINKS_PER_PEER.key(),
            Optional.of(configuration.get(FaroOptions.LINKS_PER_PEER)),
            1);
    retries = netty.getNetworkRetries();
    tls = netty.getSSLEnabled() ? TlsMaterial.of(configuration) : null;
    secret = secret(configuration, tls != null);
    sizes =
        LinkRings.fitting(
            configuration.get(FaroOptions.MEMORY_LIMIT).getBytes(),
            positive(
                FaroOptions.LINKS_EXPECTED.key(), configuration.get(FaroOptions.LINKS_EXPECTED)),
            configuration.get(FaroOptions.RING_SIZE).getBytes(),
            this::memoryOf);
  }

  // Over which transport a link will go is not known before its peer comes.
  private long[] memoryOf(List<ChannelSpec> channels) {
    try {
      return Endpoint.channelMemory(endpointConfig(0), channels);
    } catch (FaroException failed) {
      throw new IllegalConfigurationException(
          "Faro cannot be started: " + failed.code() + ", "
              + OptionNames.inFlinksKeys(failed.getMessage()),
          failed);
    }
  }

  private static int within(String key, Optional<Integer> value, int otherwise) {
    int number = value.orElse(otherwise);
    if (number < 1 || number > THREAD_LIMIT) {
      throw new IllegalConfigurationException(
          key + " is " + number + "; it has to be 1 to " + THREAD_LIMIT + ".");
    }
    return number;
  }

  private static int positive(String key, int value) {
    if (value < 1) {
      throw new IllegalConfigurationException(key + " is " + value + "; it has to be at least 1.");
    }
    return value;
  }

  private static byte[] secret(Configuration configuration, boolean withTls) {
    Optional<String> secret = configuration.getOptional(FaroOptions.SECRET);
    boolean hasFile = configuration.getOptional(FaroOptions.SECRET_FILE).isPresent();
    if (secret.isPresent() && hasFile) {
      throw new IllegalConfigurationException(
          FaroOptions.SECRET.key() + " and " + FaroOptions.SECRET_FILE.key() + " are both set.");
    }
    if (secret.isEmpty() && !hasFile && !withTls) {
      LOG.info(
          "Neither security.ssl.internal.enabled nor {} is set: whoever reaches the data port can"
              + " read what is exchanged, as with Flink's own shuffle service.",
          FaroOptions.SECRET.key());
    }
    return secret.map(text -> text.getBytes(UTF_8)).orElse(null);
  }

  int ioThreads() {
    return ioThreads;
  }

  int linksPerPeer() {
    return linksPerPeer;
  }

  int retries() {
    return retries;
  }

  boolean linksAreReused() {
    return reused;
  }

  /** The rings of the links that are expected. */
  LinkRings rings() {
    return sizes.get(0);
  }

  /** What an operator wants to know of how exchanges go, for the log. */
  String summary() {
    return "version "
        + version() + ", transport " + configuration.get(FaroOptions.TRANSPORT) + ", rings of "
        + rings().dataBytes() + " bytes for data and " + rings().requestBytes() + " for requests, "
        + (tls != null
            ? "TLS"
            : secret != null || configuration.getOptional(FaroOptions.SECRET_FILE).isPresent()
                ? "a secret"
                : "no secret");
  }

  // Maven writes it into the jar.
  private static String version() {
    Properties properties = new Properties();
    try (InputStream written =
        FlinkSettings.class.getResourceAsStream(
            "/META-INF/maven/io.faro/faro-flink/pom.properties")) {
      if (written != null) {
        properties.load(written);
      }
    } catch (IOException unreadable) {
      LOG.debug("The version of this jar cannot be read", unreadable);
    }
    return properties.getProperty("version", "unknown");
  }

  /** How large the rings of links are, of which Faro takes that much now. */
  LinkMemory linkMemory(LongSupplier taken) {
    return new LinkMemory(
        sizes,
        configuration.get(FaroOptions.MEMORY_LIMIT).getBytes(),
        configuration.get(FaroOptions.LINKS_EXPECTED),
        connectTimeout().toNanos(),
        taken,
        System::nanoTime,
        LOG::warn);
  }

  /** Ports to try, in that order; 0: the system chooses. */
  Iterator<Integer> ports() {
    return NetUtils.getPortRangeFromString(ports);
  }

  /** The range of ports as it is set, for messages. */
  String portRange() {
    return ports;
  }

  /** For an endpoint at this port. Secrets stay where they are: {@link #close} overwrites them. */
  SessionConfig endpointConfig(int port) {
    SessionConfig.Builder config =
        SessionConfig.builder()
            .set(Setting.CLUSTER_ID, configuration.get(FaroOptions.CLUSTER_ID))
            .set(Setting.CLUSTER_LISTEN, host + ":" + port)
            .set(Setting.TRANSPORT, configuration.get(FaroOptions.TRANSPORT))
            .set(Setting.MEMORY_LIMIT_BYTES, configuration.get(FaroOptions.MEMORY_LIMIT).getBytes())
            .set(
                Setting.LIVENESS_TIMEOUT_MS,
                configuration.get(FaroOptions.LIVENESS_TIMEOUT).toMillis())
            .set(Setting.CONNECT_TIMEOUT_MS, connectTimeout().toMillis());
    if (tls != null) {
      tls.addTo(config);
    }
    if (secret != null) {
      config.setBytes(Setting.SECURITY_SECRET_FILE, secret);
    }
    configuration
        .getOptional(FaroOptions.SECRET_FILE)
        .ifPresent(file -> config.set(Setting.SECURITY_SECRET_FILE, file));
    if (tls == null
        && secret == null
        && configuration.getOptional(FaroOptions.SECRET_FILE).isEmpty()) {
      config.set(Setting.SECURITY_OPEN, 1);
    }
    addSettings(config);
    return config.build();
  }

  private Duration connectTimeout() {
    return configuration
        .getOptional(FaroOptions.CONNECT_TIMEOUT)
        .or(
            () ->
                configuration
                    .getOptional(NettyShuffleEnvironmentOptions.CLIENT_CONNECT_TIMEOUT_SECONDS)
                    .map(Duration::ofSeconds))
        .orElse(DEFAULT_CONNECT_TIMEOUT);
  }

  private void addSettings(SessionConfig.Builder config) {
    for (Map.Entry<String, String> entry : configuration.toMap().entrySet()) {
      if (entry.getKey().startsWith(FaroOptions.SETTING_PREFIX)) {
        String key = entry.getKey().substring(FaroOptions.SETTING_PREFIX.length());
        if (tls != null && key.startsWith("security.")) {
          throw new IllegalConfigurationException(
              entry.getKey()
                  + ": with security.ssl.internal.enabled, Flink's settings say what is secure.");
        }
        config.set(setting(entry.getKey(), key), entry.getValue());
      }
    }
  }

  private static Setting setting(String given, String key) {
    return Arrays.stream(Setting.values())
        .filter(setting -> setting.key().equals(key))
        .findAny()
        .orElseThrow(() -> new IllegalStateException(given)); // OptionNames has looked
  }

  /**
   * Says in the log what memory Faro takes, and which part of Flink's memory model it belongs to.
   */
  void logMemory(MemorySize networkMemory) {
    MemorySize limit = configuration.get(FaroOptions.MEMORY_LIMIT);
    MemorySize overhead = configuration.get(TaskManagerOptions.JVM_OVERHEAD_MAX);
    LOG.info(
        "Faro takes at most {} ({}) of native memory for its links: up to {} bytes, {} of them"
            + " rings, for each of {} links ({}). This is outside of Flink's network memory ({}),"
            + " and belongs to {} (at most {}).",
        limit.toHumanReadableString(),
        FaroOptions.MEMORY_LIMIT.key(),
        rings().memoryBytes(),
        rings().requestBytes() + rings().dataBytes(),
        configuration.get(FaroOptions.LINKS_EXPECTED),
        FaroOptions.LINKS_EXPECTED.key(),
        networkMemory.toHumanReadableString(),
        TaskManagerOptions.JVM_OVERHEAD_MAX.key(),
        overhead.toHumanReadableString());
    if (limit.compareTo(overhead) > 0) {
      LOG.warn(
          "{} ({}) is more than {} ({}): a container that limits the memory may end this"
              + " TaskManager.",
          FaroOptions.MEMORY_LIMIT.key(),
          limit.toHumanReadableString(),
          TaskManagerOptions.JVM_OVERHEAD_MAX.key(),
          overhead.toHumanReadableString());
    }
  }

  /** Overwrites secrets and keys. The endpoint has been opened. */
  @Override
  public void close() {
    if (secret != null) {
      Arrays.fill(secret, (byte) 0);
    }
    if (tls != null) {
      tls.close();
    }
  }
}
