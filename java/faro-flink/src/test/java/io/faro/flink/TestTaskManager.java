package io.faro.flink;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.NettyShuffleEnvironmentOptions;
import org.apache.flink.runtime.clusterframework.types.ResourceID;
import org.apache.flink.runtime.io.network.ConnectionID;
import org.apache.flink.runtime.io.network.ConnectionManager;
import org.apache.flink.runtime.io.network.PartitionRequestClient;
import org.apache.flink.runtime.io.network.TaskEventPublisher;
import org.apache.flink.runtime.io.network.buffer.BufferPool;
import org.apache.flink.runtime.io.network.buffer.NetworkBufferPool;
import org.apache.flink.runtime.io.network.netty.NettyConfig;
import org.apache.flink.runtime.io.network.partition.PartitionProducerStateProvider;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.runtime.io.network.partition.ResultPartitionProvider;
import org.apache.flink.runtime.io.network.partition.consumer.InputChannelBuilder;
import org.apache.flink.runtime.io.network.partition.consumer.SingleInputGate;
import org.apache.flink.runtime.io.network.partition.consumer.SingleInputGateBuilder;

/** What a TaskManager has of exchanges: a connection manager, and gates with buffers of a pool. */
@SuppressWarnings("try") // close
final class TestTaskManager implements AutoCloseable {
  static final int SEGMENT_BYTES = 32 << 10;
  private static final int SEGMENTS = 64;

  final FaroConnectionManager connections;
  private final ResourceID resource;
  private final InetSocketAddress address;
  private final NetworkBufferPool segments = new NetworkBufferPool(SEGMENTS, SEGMENT_BYTES);
  private final List<SingleInputGate> gates = new ArrayList<>();

  TestTaskManager(
      String name, ResultPartitionProvider partitions, TaskEventPublisher events, Configuration configuration)
      throws IOException {
    resource = new ResourceID(name);
    InetAddress host = InetAddress.getLoopbackAddress();
    NettyConfig netty = new NettyConfig(host, 0, SEGMENT_BYTES, 1, configuration);
    boolean reused =
        configuration.get(NettyShuffleEnvironmentOptions.TCP_CONNECTION_REUSE_ACROSS_JOBS_ENABLED);
    connections =
        new FaroConnectionManager(
            partitions, events, new FlinkSettings(configuration, netty, host, 2, reused), name);
    address = new InetSocketAddress(host, connections.start());
  }

  ConnectionID connection() {
    return new ConnectionID(resource, address, 7);
  }

  /** A gate with one channel, of that many buffers of its own and up to eight floating ones. */
  SingleInputGate gate(ConnectionID from, ResultPartitionID partition, int buffers) throws Exception {
    return gate(from, partition, buffers, SingleInputGateBuilder.NO_OP_PRODUCER_CHECKER);
  }

  SingleInputGate gate(
      ConnectionID from, ResultPartitionID partition, int buffers, PartitionProducerStateProvider producers)
      throws Exception {
    return gate(connections, from, partition, buffers, producers);
  }

  /** A gate whose channel uses those connections. */
  SingleInputGate gate(
      ConnectionManager over,
      ConnectionID from,
      ResultPartitionID partition,
      int buffers,
      PartitionProducerStateProvider producers)
      throws Exception {
    BufferPool pool = segments.createBufferPool(1, 8);
    SingleInputGate gate =
        new SingleInputGateBuilder()
            .setNumberOfChannels(1)
            .setSegmentProvider(segments)
            .setBufferPoolFactory(pool)
            .setPartitionProducerStateProvider(producers)
            .setChannelFactory(
                (builder, owner) ->
                    InputChannelBuilder.newBuilder()
                        .setPartitionId(partition)
                        .setConnectionManager(new To(over, from))
                        .setNetworkBuffersPerChannel(buffers)
                        .setPartitionRequestListenerTimeout(100)
                        .setMaxBackoff(10_000)
                        .buildRemoteChannel(owner))
            .build();
    gate.setup();
    gate.requestPartitions();
    gates.add(gate);
    return gate;
  }

  /** Closes a gate, and refers to it no more. */
  void close(SingleInputGate gate) throws Exception {
    gate.close();
    gates.remove(gate);
  }

  /** Closes everything; throws if a buffer was not given back. */
  @Override
  public void close() throws Exception {
    for (SingleInputGate gate : gates) {
      gate.close();
    }
    connections.shutdown();
    segments.destroyAllBufferPools();
    int missing = SEGMENTS - segments.getNumberOfAvailableMemorySegments();
    segments.destroy();
    if (missing != 0) {
      throw new AssertionError(missing + " buffers were not given back");
    }
  }

  /** The builder of channels knows one connection only. */
  private record To(ConnectionManager connections, ConnectionID from) implements ConnectionManager {
    @Override
    public int start() {
      throw new UnsupportedOperationException();
    }

    @Override
    public PartitionRequestClient createPartitionRequestClient(ConnectionID ignored)
        throws IOException, InterruptedException {
      return connections.createPartitionRequestClient(from);
    }

    @Override
    public void closeOpenChannelConnections(ConnectionID ignored) {
      connections.closeOpenChannelConnections(from);
    }

    @Override
    public int getNumberOfActiveConnections() {
      return connections.getNumberOfActiveConnections();
    }

    @Override
    public void shutdown() {
      throw new UnsupportedOperationException();
    }
  }
}
