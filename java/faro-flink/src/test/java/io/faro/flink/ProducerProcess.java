package io.faro.flink;

import java.util.concurrent.CountDownLatch;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;

/** A TaskManager in a process of its own, with one partition, until it is killed. */
final class ProducerProcess {
  /** The other process has one partition, whatever is asked for. */
  static final ResultPartitionID PARTITION = new ResultPartitionID();

  private ProducerProcess() {}

  public static void main(String[] arguments) throws Exception {
    ScriptedPartitions partitions = new ScriptedPartitions();
    partitions.any().add(TestBuffers.data(1, 100));
    TestTaskManager taskManager =
        new TestTaskManager("killed", partitions, (to, event) -> false, new Configuration());
    System.out.println("port " + taskManager.connection().getAddress().getPort());
    new CountDownLatch(1).await();
  }
}
