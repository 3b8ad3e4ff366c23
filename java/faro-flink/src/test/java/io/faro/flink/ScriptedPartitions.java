package io.faro.flink;

import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.flink.runtime.io.network.partition.BufferAvailabilityListener;
import org.apache.flink.runtime.io.network.partition.PartitionNotFoundException;
import org.apache.flink.runtime.io.network.partition.PartitionRequestListener;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.runtime.io.network.partition.ResultPartitionProvider;
import org.apache.flink.runtime.io.network.partition.ResultSubpartitionIndexSet;
import org.apache.flink.runtime.io.network.partition.ResultSubpartitionView;

/** Partitions of one subpartition each, which tests fill by hand. Threads: any. */
final class ScriptedPartitions implements ResultPartitionProvider {
  private final Map<ResultPartitionID, ScriptedView> views = new ConcurrentHashMap<>();
  private ScriptedView any;

  ScriptedView add(ResultPartitionID partition) {
    return views.computeIfAbsent(partition, id -> new ScriptedView());
  }

  /** Waits until its readers have released it, and forgets it. */
  void remove(ResultPartitionID partition) throws InterruptedException {
    views.remove(partition).awaitRelease();
  }

  /** The subpartition of every partition that has none of its own. */
  synchronized ScriptedView any() {
    if (any == null) {
      any = new ScriptedView();
    }
    return any;
  }

  @Override
  public synchronized ResultSubpartitionView createSubpartitionView(
      ResultPartitionID partition, ResultSubpartitionIndexSet subpartitions, BufferAvailabilityListener listener)
      throws PartitionNotFoundException {
    ScriptedView view = views.getOrDefault(partition, any);
    if (view == null) {
      throw new PartitionNotFoundException(partition);
    }
    view.listen(listener);
    return view;
  }

  @Override
  public Optional<ResultSubpartitionView> createSubpartitionViewOrRegisterListener(
      ResultPartitionID partition,
      ResultSubpartitionIndexSet subpartitions,
      BufferAvailabilityListener listener,
      PartitionRequestListener requestListener)
      throws PartitionNotFoundException {
    return Optional.of(createSubpartitionView(partition, subpartitions, listener));
  }

  @Override
  public void releasePartitionRequestListener(PartitionRequestListener listener) {}
}
