package io.faro.flink;

import io.faro.flink.MessageHeader.Kind;
import java.io.IOException;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.flink.runtime.event.TaskEvent;
import org.apache.flink.runtime.io.network.PartitionRequestClient;
import org.apache.flink.runtime.io.network.netty.exception.LocalTransportException;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.runtime.io.network.partition.ResultSubpartitionIndexSet;
import org.apache.flink.runtime.io.network.partition.consumer.RemoteInputChannel;

/**
 * What input channels ask of a link. They share it, and are counted.
 *
 * <p>Threads: any. Never blocks: all is handed over to the I/O thread.
 */
final class FaroPartitionRequestClient implements PartitionRequestClient {
  private static final int CLOSED = -1;

  private final ConsumerLink link;
  private final Peer peer;
  private final boolean reused; // the link stays when nobody uses it
  private final Runnable onClosed;
  private final Map<RemoteInputChannel, Subscription> subscriptions = new ConcurrentHashMap<>();
  // How many input channels use the link; CLOSED: it is not used any more.
  private final AtomicInteger users = new AtomicInteger();

  /**
   * {@code onClosed}: called when the link is not used any more, and is being closed, or has ended
   * by itself. Idempotent.
   */
  FaroPartitionRequestClient(ConsumerLink link, Peer peer, boolean reused, Runnable onClosed) {
    this.link = link;
    this.peer = peer;
    this.reused = reused;
    this.onClosed = onClosed;
    link.ended().thenRun(onClosed);
  }

  /** One more input channel uses it. False: make another one. */
  boolean retain() {
    return link.failure() == null
        && users.updateAndGet(count -> count == CLOSED ? CLOSED : count + 1) != CLOSED;
  }

  /** Closes the link if nobody uses it, and it is not to stay. */
  void closeIfUnused() {
    if ((!reused || link.failure() != null) && users.compareAndSet(0, CLOSED)) {
      onClosed.run();
      link.io.execute(link::close);
    }
  }

  @Override
  public void requestSubpartition(
      ResultPartitionID partition,
      ResultSubpartitionIndexSet subpartitions,
      RemoteInputChannel input,
      int delayMilliseconds)
      throws IOException {
    checkUsable();
    Subscription subscription = new Subscription(link, input);
    Subscription former = subscriptions.put(input, subscription); // its partition was not found
    byte[] identities =
        Identities.of(new Identities.Request(partition, subpartitions, input.getInputChannelId()));
    IoThread.Command request =
        () -> {
          if (former != null) {
            link.cancel(former);
          }
          link.request(subscription, identities);
        };
    if (delayMilliseconds == 0) {
      link.io.execute(request);
    } else {
      CompletableFuture.delayedExecutor(delayMilliseconds, TimeUnit.MILLISECONDS)
          .execute(() -> link.io.execute(request));
    }
    if (input.isReleased()) {
      remove(input); // it was released before it had asked
    }
  }

  @Override
  public void notifyCreditAvailable(RemoteInputChannel input) {
    Subscription subscription = subscriptions.get(input);
    if (subscription != null) {
      subscription.offerTo(link.io);
    } // else its request, which is to come, tells them
  }

  @Override
  public void notifyNewBufferSize(RemoteInputChannel input, int bytes) {
    tell(input, Kind.BUFFER_SIZE, bytes, 0, null);
  }

  @Override
  public void notifyRequiredSegmentId(RemoteInputChannel input, int subpartition, int segment) {
    tell(input, Kind.SEGMENT, subpartition, segment, null);
  }

  @Override
  public void resumeConsumption(RemoteInputChannel input) {
    tell(input, Kind.RESUME, 0, 0, null);
  }

  @Override
  public void acknowledgeAllRecordsProcessed(RemoteInputChannel input) {
    tell(input, Kind.ACKNOWLEDGE_ALL, 0, 0, null);
  }

  @Override
  public void sendTaskEvent(ResultPartitionID partition, TaskEvent event, RemoteInputChannel input)
      throws IOException {
    checkUsable();
    byte[] encoded = new TaskEvents(partition, event).encoded();
    if (encoded.length > MessageHeader.LONG_LIMIT) {
      throw new IOException(
          "A task event of " + encoded.length + " bytes; Faro carries " + MessageHeader.LONG_LIMIT
              + ".");
    }
    tell(input, Kind.TASK_EVENT, 0, 0, encoded);
  }

  private void tell(RemoteInputChannel input, byte kind, int a, int b, byte[] payload) {
    Subscription subscription = subscriptions.get(input);
    if (subscription != null) {
      link.io.execute(() -> link.tell(subscription, kind, a, b, payload));
    }
  }

  @Override
  public void close(RemoteInputChannel input) {
    remove(input);
    users.updateAndGet(count -> Math.max(count - 1, Math.min(count, 0)));
    closeIfUnused();
  }

  private void remove(RemoteInputChannel input) {
    Subscription subscription = subscriptions.remove(input);
    if (subscription != null) {
      link.io.execute(() -> link.cancel(subscription));
    }
  }

  private void checkUsable() throws IOException {
    IOException failure = link.failure();
    if (failure != null) {
      throw failure;
    }
    if (users.get() == CLOSED) {
      throw new LocalTransportException("The channel to " + peer + " was closed.", peer.address());
    }
  }
}
