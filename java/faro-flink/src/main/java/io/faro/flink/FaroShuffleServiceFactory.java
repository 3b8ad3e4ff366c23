package io.faro.flink;

import io.faro.Faro;
import org.apache.flink.configuration.IllegalConfigurationException;
import org.apache.flink.runtime.io.network.ConnectionManager;
import org.apache.flink.runtime.io.network.LocalConnectionManager;
import org.apache.flink.runtime.io.network.netty.NettyConfig;
import org.apache.flink.runtime.io.network.NettyShuffleServiceFactory;
import org.apache.flink.runtime.io.network.partition.ResultPartition;
import org.apache.flink.runtime.io.network.partition.ResultPartitionManager;
import org.apache.flink.runtime.io.network.partition.consumer.SingleInputGate;
import org.apache.flink.runtime.shuffle.NettyShuffleDescriptor;
import org.apache.flink.runtime.shuffle.ShuffleEnvironment;
import org.apache.flink.runtime.shuffle.ShuffleEnvironmentContext;
import org.apache.flink.runtime.shuffle.ShuffleMaster;
import org.apache.flink.runtime.shuffle.ShuffleMasterContext;
import org.apache.flink.runtime.shuffle.ShuffleServiceFactory;
import org.apache.flink.runtime.taskmanager.NettyShuffleEnvironmentConfiguration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Flink's shuffle service, with the connections between TaskManagers made by Faro. For Flink's
 * configuration:
 *
 * <pre>{@code
 * shuffle-service-factory.class: io.faro.flink.FaroShuffleServiceFactory
 * }</pre>
 *
 * <p>Partitions, gates, buffers and checkpoints are Flink's own. The JobManager needs no native
 * library.
 */
public final class FaroShuffleServiceFactory
    implements ShuffleServiceFactory<NettyShuffleDescriptor, ResultPartition, SingleInputGate> {
  private static final Logger LOG = LoggerFactory.getLogger(FaroShuffleServiceFactory.class);

  private final NettyShuffleServiceFactory flinks = new NettyShuffleServiceFactory();

  /** Made by Flink, by the name of the class. */
  public FaroShuffleServiceFactory() {}

  @Override
  public ShuffleMaster<NettyShuffleDescriptor> createShuffleMaster(ShuffleMasterContext context) {
    OptionNames.check(context.getConfiguration());
    return flinks.createShuffleMaster(context);
  }

  @Override
  public ShuffleEnvironment<ResultPartition, SingleInputGate> createShuffleEnvironment(
      ShuffleEnvironmentContext context) {
    OptionNames.check(context.getConfiguration());
    NettyShuffleEnvironmentConfiguration configuration =
        NettyShuffleEnvironmentConfiguration.fromConfiguration(
            context.getConfiguration(),
            context.getNetworkMemorySize(),
            context.isLocalCommunicationOnly(),
            context.getHostAddress());
    NettyConfig netty = configuration.nettyConfig();
    if (netty != null && fallsBack(context)) {
      return flinks.createShuffleEnvironment(context);
    }
    ResultPartitionManager partitions =
        new ResultPartitionManager(
            configuration.getPartitionRequestListenerTimeout(), context.getScheduledExecutor());
    ConnectionManager connections =
        netty == null
            ? new LocalConnectionManager()
            : connections(context, configuration, partitions);
    return NettyShuffleServiceFactory.createNettyShuffleEnvironment(
        configuration,
        context.getTaskExecutorResourceId(),
        context.getEventPublisher(),
        partitions,
        connections,
        context.getParentMetricGroup(),
        context.getIoExecutor(),
        context.getNumberOfSlots(),
        context.getTmpDirPaths());
  }

  private static boolean fallsBack(ShuffleEnvironmentContext context) {
    String fallback = context.getConfiguration().get(FaroOptions.FALLBACK);
    boolean isAllowed = fallback.equals("netty");
    if (!isAllowed && !fallback.equals("none")) {
      throw new IllegalConfigurationException(
          FaroOptions.FALLBACK.key() + " is " + fallback + "; it has to be none or netty.");
    }
    if (Faro.isAvailable()) {
      return false;
    }
    if (!isAllowed) {
      throw new IllegalConfigurationException(
          "Faro's native library does not load here. To use Flink's own shuffle service wherever"
              + " that is so, set " + FaroOptions.FALLBACK.key() + ": netty.",
          Faro.unavailabilityCause());
    }
    LOG.warn(
        "Faro's native library does not load here: this TaskManager uses Flink's own shuffle"
            + " service, and cannot exchange with those that use Faro.",
        Faro.unavailabilityCause());
    return true;
  }

  private static ConnectionManager connections(
      ShuffleEnvironmentContext context,
      NettyShuffleEnvironmentConfiguration configuration,
      ResultPartitionManager partitions) {
    FlinkSettings settings =
        new FlinkSettings(
            context.getConfiguration(),
            configuration.nettyConfig(),
            context.getHostAddress(),
            context.getNumberOfSlots(),
            configuration.isConnectionReuseEnabled());
    settings.logMemory(context.getNetworkMemorySize());
    FaroConnectionManager connections =
        new FaroConnectionManager(
            partitions,
            context.getEventPublisher(),
            settings,
            context.getTaskExecutorResourceId().getResourceIdString());
    FaroMetrics.register(connections, context.getParentMetricGroup());
    return connections;
  }
}
