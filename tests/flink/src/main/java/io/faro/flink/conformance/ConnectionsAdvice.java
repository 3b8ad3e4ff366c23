package io.faro.flink.conformance;

import net.bytebuddy.asm.Advice;
import org.apache.flink.runtime.clusterframework.types.ResourceID;
import org.apache.flink.runtime.io.network.ConnectionManager;
import org.apache.flink.runtime.io.network.TaskEventPublisher;
import org.apache.flink.runtime.io.network.partition.ResultPartitionManager;
import org.apache.flink.runtime.taskmanager.NettyShuffleEnvironmentConfiguration;

/** In {@code NettyShuffleServiceFactory.createNettyShuffleEnvironment}: Faro's connections in the place of Netty's. */
final class ConnectionsAdvice {
  private ConnectionsAdvice() {}

  @Advice.OnMethodEnter
  static void enter(
      @Advice.Argument(0) NettyShuffleEnvironmentConfiguration configuration,
      @Advice.Argument(1) ResourceID taskManager,
      @Advice.Argument(2) TaskEventPublisher events,
      @Advice.Argument(3) ResultPartitionManager partitions,
      @Advice.Argument(value = 4, readOnly = false) ConnectionManager connections) {
    connections = Replacements.connections(configuration, taskManager, events, partitions, connections);
  }
}
