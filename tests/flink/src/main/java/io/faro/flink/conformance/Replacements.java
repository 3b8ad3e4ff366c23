package io.faro.flink.conformance;

import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.util.Arrays;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.TaskManagerOptions;
import org.apache.flink.runtime.clusterframework.types.ResourceID;
import org.apache.flink.runtime.io.network.ConnectionManager;
import org.apache.flink.runtime.io.network.TaskEventPublisher;
import org.apache.flink.runtime.io.network.netty.NettyConfig;
import org.apache.flink.runtime.io.network.netty.NettyConnectionManager;
import org.apache.flink.runtime.io.network.partition.ResultPartitionManager;
import org.apache.flink.runtime.taskmanager.NettyShuffleEnvironmentConfiguration;

/**
 * What the advice in Flink's classes calls.
 *
 * <p>Threads: any.
 */
public final class Replacements {
  private static final String MODULE = "io.faro.flink.";
  private static final String SERVICE = "shuffle-service-factory.class";
  private static final int SLOTS = 2; // two I/O threads

  private Replacements() {}

  /** A copy that names Faro's shuffle service, or the same if a test has named one. */
  public static Configuration withFaroAsDefault(Configuration configuration) {
    if (configuration.containsKey(SERVICE)) {
      return configuration;
    }
    Configuration copy = new Configuration(configuration);
    copy.setString(SERVICE, MODULE + "FaroShuffleServiceFactory");
    return copy;
  }

  /** Whether a cluster has one TaskManager, whose slots two could share. */
  public static boolean canBeTwo(Configuration configuration, int taskManagers) {
    int slots = configuration.get(TaskManagerOptions.NUM_TASK_SLOTS);
    return taskManagers == 1 && slots > 0 && slots % 2 == 0;
  }

  /** A copy, for each of two TaskManagers. */
  public static Configuration withHalfTheSlots(Configuration configuration) {
    Configuration copy = new Configuration(configuration);
    copy.set(TaskManagerOptions.NUM_TASK_SLOTS, configuration.get(TaskManagerOptions.NUM_TASK_SLOTS) / 2);
    return copy;
  }

  /** Faro's for what would be Netty's; others stay: those of Faro's own service, of tests, and local ones. */
  public static ConnectionManager connections(
      NettyShuffleEnvironmentConfiguration configuration,
      ResourceID taskManager,
      TaskEventPublisher events,
      ResultPartitionManager partitions,
      ConnectionManager given) {
    if (given.getClass() != NettyConnectionManager.class) {
      return given;
    }
    NettyConfig netty = configuration.nettyConfig();
    try {
      given.shutdown();
      Method address = NettyConfig.class.getDeclaredMethod("getServerAddress");
      address.setAccessible(true);
      Object settings =
          made("FlinkSettings", netty.getConfig(), netty, (InetAddress) address.invoke(netty), SLOTS,
              configuration.isConnectionReuseEnabled());
      return (ConnectionManager)
          made("FaroConnectionManager", partitions, events, settings, taskManager.getResourceIdString());
    } catch (Exception failed) {
      throw new IllegalStateException("Faro's connections cannot be put in the place of Netty's", failed);
    }
  }

  // The module is not needed to compile this, so that one jar serves all versions of Flink.
  private static Object made(String type, Object... arguments) throws ReflectiveOperationException {
    Constructor<?> constructor =
        Arrays.stream(Class.forName(MODULE + type).getDeclaredConstructors())
            .filter(each -> each.getParameterCount() == arguments.length)
            .findFirst()
            .orElseThrow(() -> new NoSuchMethodException(type));
    constructor.setAccessible(true);
    return constructor.newInstance(arguments);
  }
}
