package io.faro.flink;

import java.io.IOException;
import java.util.Optional;
import org.apache.flink.runtime.io.network.NetworkSequenceViewReader;
import org.apache.flink.runtime.io.network.buffer.Buffer.DataType;
import org.apache.flink.runtime.io.network.netty.NettyPartitionRequestListener;
import org.apache.flink.runtime.io.network.partition.BufferAvailabilityListener;
import org.apache.flink.runtime.io.network.partition.PartitionRequestListener;
import org.apache.flink.runtime.io.network.partition.PipelinedSubpartitionView;
import org.apache.flink.runtime.io.network.partition.ResultPartition;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.runtime.io.network.partition.ResultPartitionProvider;
import org.apache.flink.runtime.io.network.partition.ResultSubpartition.BufferAndBacklog;
import org.apache.flink.runtime.io.network.partition.ResultSubpartitionIndexSet;
import org.apache.flink.runtime.io.network.partition.ResultSubpartitionView;
import org.apache.flink.runtime.io.network.partition.ResultSubpartitionView.AvailabilityWithBacklog;
import org.apache.flink.runtime.io.network.partition.consumer.InputChannel.BufferAndAvailability;
import org.apache.flink.runtime.io.network.partition.consumer.InputChannelID;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads what one remote input channel has requested, as far as its credits go. The partition may
 * come later than the request, or never.
 *
 * <p>Threads: the I/O thread's, except {@link #notifyDataAvailable} and
 * {@link #notifyPriorityEvent} (those that write the partition),
 * {@link #notifySubpartitionsCreated} (the one that registers it) and
 * {@link #notifyPartitionRequestTimeout} (a timer's).
 */
final class SubpartitionReader implements NetworkSequenceViewReader, BufferAvailabilityListener {
  private static final Logger LOG = LoggerFactory.getLogger(SubpartitionReader.class);

  /** The partition is not of interest: what is there to see is the view's. */
  private final class Offer extends Coalesced {
    @Override
    void giveTo(IoThread io) {
      // Those that write such a subpartition hold no lock when they tell of it.
      boolean sendsAtOnce = link.sharesMemory() && view instanceof PipelinedSubpartitionView;
      if (!sendsAtOnce || !io.tryRun(this)) {
        io.execute(this);
      }
    }

    @Override
    void look() {
      link.enqueueIfAvailable(SubpartitionReader.this);
    }
  }

  private final ProducerLink link;
  private final int index;
  private final int generation;
  private final InputChannelID receiver;
  private final int initialCredit;
  private final Offer offer = new Offer();
  private final Object lock = new Object(); // for what follows, while it changes
  private volatile ResultSubpartitionView view; // null: the partition is not there yet
  private PartitionRequestListener listener; // that waits for it; null: none
  private boolean released;
  private volatile int onlySubpartition = -1; // if it reads a single one
  private int credits;
  private boolean enqueued;

  SubpartitionReader(
      ProducerLink link, int index, int generation, InputChannelID receiver, int initialCredit) {
    this.link = link;
    this.index = index;
    this.generation = generation;
    this.receiver = receiver;
    this.initialCredit = initialCredit;
    credits = initialCredit;
  }

  int index() {
    return index;
  }

  int generation() {
    return generation;
  }

  @Override
  public void requestSubpartitionViewOrRegisterListener(
      ResultPartitionProvider provider,
      ResultPartitionID partition,
      ResultSubpartitionIndexSet subpartitions)
      throws IOException {
    synchronized (lock) {
      PartitionRequestListener waiting =
          new NettyPartitionRequestListener(provider, this, subpartitions, partition);
      listener = waiting;
      Optional<ResultSubpartitionView> found =
          provider.createSubpartitionViewOrRegisterListener(
              partition, subpartitions, this, waiting);
      if (found.isEmpty()) {
        return;
      }
      listener = null;
      take(found.get(), subpartitions);
    }
    offer.offerTo(link.io);
  }

  @Override
  public void notifySubpartitionsCreated(
      ResultPartition partition, ResultSubpartitionIndexSet subpartitions) throws IOException {
    synchronized (lock) {
      listener = null;
      if (released) {
        return; // the request was cancelled meanwhile
      }
      take(partition.createSubpartitionView(subpartitions, this), subpartitions);
    }
    offer.offerTo(link.io);
  }

  private void take(ResultSubpartitionView created, ResultSubpartitionIndexSet subpartitions) {
    if (subpartitions.size() == 1) {
      onlySubpartition = subpartitions.values().iterator().next();
    }
    view = created;
  }

  @Override
  public void notifyPartitionRequestTimeout(PartitionRequestListener expired) {
    // The caller may hold locks of its own: hand it over.
    link.io.execute(() -> link.partitionNotFound(this, expired.getResultPartitionId()));
  }

  @Override
  public void notifyDataAvailable(ResultSubpartitionView from) {
    offer.offerTo(link.io);
  }

  @Override
  public void notifyPriorityEvent(int sequenceNumber) {
    offer.offerTo(link.io);
  }

  /** Whether there is a partition to read. */
  boolean hasView() {
    return view != null;
  }

  @Override
  public AvailabilityWithBacklog getAvailabilityAndBacklog() {
    return view.getAvailabilityAndBacklog(credits > 0);
  }

  @Override
  public int peekNextBufferSubpartitionId() throws IOException {
    return onlySubpartition >= 0 ? onlySubpartition : view.peekNextBufferSubpartitionId();
  }

  /**
   * The next buffer, if there is one, and what follows it that may be sent. A buffer of data takes
   * a credit.
   */
  @Override
  public BufferAndAvailability getNextBuffer() throws IOException {
    BufferAndBacklog next = view.getNextBuffer();
    if (next == null) {
      return null;
    }
    if (next.buffer().isBuffer() && --credits < 0) {
      next.buffer().recycleBuffer();
      throw new IllegalStateException("A buffer without a credit.");
    }
    DataType following = next.getNextDataType();
    return new BufferAndAvailability(
        next.buffer(),
        credits > 0 || following.isEvent() ? following : DataType.NONE,
        next.buffersInBacklog(),
        next.getSequenceNumber());
  }

  @Override
  public void addCredit(int more) {
    credits += more;
  }

  /** A consumer that has no buffers of its own gets some only when it knows how many are wanted. */
  @Override
  public boolean needAnnounceBacklog() {
    return initialCredit == 0 && credits == 0;
  }

  @Override
  public void resumeConsumption() {
    if (initialCredit == 0) {
      credits = 0; // the consumer has given its buffers back while it was blocked
    }
    if (view != null) {
      view.resumeConsumption();
    }
  }

  @Override
  public void acknowledgeAllRecordsProcessed() {
    if (view != null) {
      view.acknowledgeAllDataProcessed();
    }
  }

  @Override
  public void notifyNewBufferSize(int bytes) {
    if (view != null) {
      view.notifyNewBufferSize(bytes);
    }
  }

  @Override
  public void notifyRequiredSegmentId(int subpartition, int segment) {
    if (view != null) {
      view.notifyRequiredSegmentId(subpartition, segment);
    }
  }

  @Override
  public boolean isRegisteredAsAvailable() {
    return enqueued;
  }

  @Override
  public void setRegisteredAsAvailable(boolean enqueued) {
    this.enqueued = enqueued;
  }

  @Override
  public boolean isReleased() {
    return view.isReleased();
  }

  @Override
  public Throwable getFailureCause() {
    return view.getFailureCause();
  }

  @Override
  public InputChannelID getReceiverId() {
    return receiver;
  }

  /** Whether {@link #releaseAllResources} was called. */
  boolean isCancelled() {
    return released;
  }

  @Override
  public void releaseAllResources() {
    PartitionRequestListener waiting;
    synchronized (lock) {
      if (released) {
        return;
      }
      released = true;
      waiting = listener;
      listener = null;
    }
    if (waiting != null) {
      waiting.releaseListener();
    }
    ResultSubpartitionView read = view;
    if (read != null) {
      try {
        read.releaseAllResources();
      } catch (IOException | RuntimeException thrown) {
        LOG.warn("A subpartition that {} has read could not be released", receiver, thrown);
      }
    }
  }

  @Override
  public String toString() {
    return "the reader of " + receiver;
  }
}
