package io.faro.flink;

import java.time.Duration;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.configuration.MemorySize;

/**
 * What of Faro can be set in Flink's configuration. The README of the module says which of Flink's
 * own settings count, too.
 */
public final class FaroOptions {
  /** {@code faro.io-threads}. */
  public static final ConfigOption<Integer> IO_THREADS =
      ConfigOptions.key("faro.io-threads")
          .intType()
          .noDefaultValue()
          .withDescription(
              "Threads of a TaskManager that serve its links. A link belongs to one of them."
                  + " Default: 2, or 1 on a TaskManager with one slot.");

  /** {@code faro.links-per-peer}. */
  public static final ConfigOption<Integer> LINKS_PER_PEER =
      ConfigOptions.key("faro.links-per-peer")
          .intType()
          .defaultValue(1)
          .withDescription(
              "Most links from a TaskManager to one that it consumes from. More than one pay only"
                  + " with as many faro.io-threads, and take as much more memory.");

  /** {@code faro.memory.limit}. */
  public static final ConfigOption<MemorySize> MEMORY_LIMIT =
      ConfigOptions.key("faro.memory.limit")
          .memoryType()
          .defaultValue(MemorySize.ofMebiBytes(64))
          .withDescription(
              "Most memory that all links of a TaskManager take, most of it rings. It is native"
                  + " memory outside of Flink's network memory, and has to be left for it in"
                  + " taskmanager.memory.jvm-overhead.");

  /** {@code faro.links.expected}. */
  public static final ConfigOption<Integer> LINKS_EXPECTED =
      ConfigOptions.key("faro.links.expected")
          .intType()
          .defaultValue(64)
          .withDescription(
              "How many links are to fit faro.memory.limit at a time: rings are made that small."
                  + " Two TaskManagers that consume from each other have two links.");

  /** {@code faro.ring.size}. */
  public static final ConfigOption<MemorySize> RING_SIZE =
      ConfigOptions.key("faro.ring.size")
          .memoryType()
          .defaultValue(MemorySize.ofMebiBytes(1))
          .withDescription(
              "Largest ring for the data of a link, a power of two; smaller if faro.links.expected"
                  + " links would not fit.");

  /** {@code faro.transport}. */
  public static final ConfigOption<String> TRANSPORT =
      ConfigOptions.key("faro.transport")
          .stringType()
          .defaultValue("auto")
          .withDescription(
              "shm, verbs, tcp, or auto: shared memory within a host, else RDMA if both ends have"
                  + " it, else tcp.");

  /** {@code faro.fallback}. */
  public static final ConfigOption<String> FALLBACK =
      ConfigOptions.key("faro.fallback")
          .stringType()
          .defaultValue("none")
          .withDescription(
              "netty: where Faro's native library does not load, the TaskManager uses Flink's own"
                  + " shuffle service. Only useful if that is so on all TaskManagers, since the two"
                  + " cannot speak to each other. none: it does not start.");

  /** {@code faro.secret}. */
  public static final ConfigOption<String> SECRET =
      ConfigOptions.key("faro.secret")
          .stringType()
          .noDefaultValue()
          .withDescription(
              "Without internal SSL: what all TaskManagers have to know, at least 32 bytes. It"
                  + " admits peers; it does not encrypt.");

  /** {@code faro.secret.file}. */
  public static final ConfigOption<String> SECRET_FILE =
      ConfigOptions.key("faro.secret.file")
          .stringType()
          .noDefaultValue()
          .withDescription("The same in a file that only its owner can read.");

  /** {@code faro.liveness-timeout}. */
  public static final ConfigOption<Duration> LIVENESS_TIMEOUT =
      ConfigOptions.key("faro.liveness-timeout")
          .durationType()
          .defaultValue(Duration.ofSeconds(60))
          .withDescription(
              "A peer that is silent for this long is lost. The same on all TaskManagers. A process"
                  + " that has died is known at once, and a pause of the garbage collector is no"
                  + " silence.");

  /** {@code faro.connect-timeout}. */
  public static final ConfigOption<Duration> CONNECT_TIMEOUT =
      ConfigOptions.key("faro.connect-timeout")
          .durationType()
          .noDefaultValue()
          .withDescription(
              "How long a link may take to open. Default:"
                  + " taskmanager.network.netty.client.connectTimeoutSec if that is set, else 30"
                  + " s.");

  /** {@code faro.cluster-id}. */
  public static final ConfigOption<String> CLUSTER_ID =
      ConfigOptions.key("faro.cluster-id")
          .stringType()
          .defaultValue("flink")
          .withDescription("TaskManagers with another one are refused.");

  /**
   * What follows in a key names a setting of Faro, which is set as it stands:
   * {@code faro.setting.verbs.device: mlx5_0}.
   */
  public static final String SETTING_PREFIX = "faro.setting.";

  private FaroOptions() {}
}
