package io.faro.flink;

import io.faro.ChannelInfo;
import io.faro.FaroException;
import io.faro.flink.MessageHeader.Kind;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.flink.runtime.io.network.buffer.Buffer;
import org.apache.flink.runtime.io.network.buffer.Buffer.DataType;
import org.apache.flink.runtime.io.network.netty.exception.LocalTransportException;
import org.apache.flink.runtime.io.network.netty.exception.RemoteTransportException;
import org.apache.flink.runtime.io.network.partition.PartitionNotFoundException;
import org.apache.flink.runtime.io.network.partition.consumer.RemoteInputChannel;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The consuming side of a link: requests subpartitions, tells credits, and gives buffers to input
 * channels.
 *
 * <p>It always takes what is in the ring. A credit guarantees a buffer for data, events take memory
 * of the heap, and what is for nobody any more is dropped: so an input channel that is not read
 * stops its own subpartition only.
 *
 * <p>Threads: the I/O thread's.
 */
final class ConsumerLink extends Link {
  private static final Logger LOG = LoggerFactory.getLogger(ConsumerLink.class);
  private static final DataType[] TYPES = DataType.values();

  private final Peer peer;
  private final CompletableFuture<ConsumerLink> opened;
  // The subscriptions by index; null: the index is free.
  private final List<Subscription> subscriptions = new ArrayList<>();
  private final ArrayDeque<Integer> free = new ArrayDeque<>();
  // The subscriptions whose credits are to be told.
  private final ArrayDeque<Subscription> credited = new ArrayDeque<>();
  private final Map<String, LinkCounts> countsOf; // by transport
  private LinkCounts counts; // null until the channel has opened
  private final CompletableFuture<Void> ended = new CompletableFuture<>();
  private int generations;
  private volatile IOException failure; // read by any thread

  /** {@code opened}: completed when the channel has opened, or will not. */
  ConsumerLink(
      IoThread io,
      long channel,
      Peer peer,
      LinkMemory.Reservation reservation,
      Map<String, LinkCounts> countsOf,
      CompletableFuture<ConsumerLink> opened) {
    super(io, channel, reservation);
    this.peer = peer;
    this.countsOf = countsOf;
    this.opened = opened;
  }

  /** Why the link has failed; null: it has not. Threads: any. */
  IOException failure() {
    return failure;
  }

  /**
   * Completes when the link has failed, or its peer has gone, whether or not anybody uses it.
   * Threads: any.
   */
  CompletableFuture<Void> ended() {
    return ended;
  }

  @Override
  void onOpened(ChannelInfo info) {
    super.onOpened(info);
    counts = countsOf.get(info.transport());
    LOG.info("Consumes from {} over {}", peer, info.transport());
    opened.complete(this);
  }

  /** Requests a subpartition. */
  void request(Subscription subscription, byte[] identities) {
    RemoteInputChannel input = subscription.input();
    if (subscription.isCancelled()) {
      return;
    }
    if (failure != null) {
      input.onError(failure);
      return;
    }
    Integer index = free.poll();
    if (index == null) {
      index = subscriptions.size();
      subscriptions.add(null);
    }
    subscriptions.set(index, subscription);
    subscription.name(index, ++generations);
    counts.requested();
    send(
        new ControlMessage(
            Kind.REQUEST,
            index,
            subscription.generation(),
            input.getInitialCredit(),
            0,
            identities));
    subscription.look(); // credits that were offered before it had a name
  }

  /** Sends a message about a subscription, unless that was cancelled. */
  void tell(Subscription subscription, byte kind, int a, int b, byte[] payload) {
    if (subscription.isNamed() && !subscription.isCancelled()) {
      send(
          new ControlMessage(kind, subscription.index(), subscription.generation(), a, b, payload));
    }
  }

  /** The subscription is not wanted any more. Buffers that come are dropped. */
  void cancel(Subscription subscription) {
    if (subscription.isCancelled()) {
      return;
    }
    tell(subscription, Kind.CANCEL, 0, 0, null);
    subscription.cancelled();
    if (subscription.isNamed() && failure == null) {
      subscriptions.set(subscription.index(), null);
      free.add(subscription.index());
    }
  }

  /** All that was sent arrives; then the channel closes. */
  void close() {
    if (!isEnded()) {
      write();
      poller().drain(channel);
    }
  }

  void credited(Subscription subscription) {
    credited.add(subscription);
    wantsToWrite();
  }

  @Override
  boolean writeOthers(MessageWriter into) throws IOException {
    for (Subscription next; (next = credited.poll()) != null; ) {
      int credits = next.takeCredits();
      if (credits > 0) {
        into.header(Kind.CREDIT, next.index(), next.generation()).a = credits;
        if (!into.send(null)) {
          return false;
        }
      }
    }
    return true;
  }

  @Override
  void onUnreadable(IOException cause) throws IOException {
    throw cause; // arrays can always be read
  }

  @Override
  public int payloadLimit(byte kind) {
    return Kind.mostFromProducer(kind);
  }

  @Override
  public Buffer openBuffer(MessageHeader header) throws IOException {
    Subscription subscription = subscription(header);
    if (subscription == null) {
      return null;
    }
    Buffer buffer = subscription.input().requestBuffer();
    if (buffer != null) {
      buffer.setDataType(TYPES[header.type]);
    } else if (!subscription.input().isReleased()) {
      IOException broken =
          new IOException("No buffer for the credit that was given to " + peer + ".");
      subscription.input().onError(broken);
    }
    return buffer;
  }

  @Override
  public void onBuffer(MessageHeader header, Buffer buffer) {
    Subscription subscription = subscription(header);
    if (subscription == null || buffer == null) {
      if (buffer != null) {
        buffer.recycleBuffer();
      }
      if (subscription != null) {
        cancel(subscription); // its input channel was released
      }
      return;
    }
    counts.received(header.total);
    buffer.setCompressed((header.flags & MessageHeader.COMPRESSED) != 0);
    RemoteInputChannel input = subscription.input();
    try {
      deliver(header, subscription, buffer);
    } catch (Throwable thrown) {
      input.onError(thrown);
    }
  }

  private static void deliver(MessageHeader header, Subscription subscription, Buffer buffer)
      throws IOException {
    RemoteInputChannel input = subscription.input();
    int[] parts = subscription.takeParts();
    if (header.total == 0 && buffer.isBuffer()) {
      buffer.recycleBuffer(); // the credit is used up, and so is the buffer that it stood for
      input.onEmptyBuffer(header.a, header.b);
    } else if (parts == null) {
      input.onBuffer(buffer, header.a, header.b, header.c);
    } else {
      deliverParts(header, input, buffer, parts);
    }
  }

  private static void deliverParts(
      MessageHeader header, RemoteInputChannel input, Buffer whole, int[] lengths)
      throws IOException {
    Buffer[] parts;
    try {
      parts = PartialBuffers.split(whole, lengths);
    } catch (RuntimeException malformed) {
      whole.recycleBuffer();
      throw malformed;
    }
    int given = 0;
    try {
      while (given < parts.length) {
        int sequence = header.a + given;
        Buffer part = parts[given++];
        // Whoever announces the backlog means the whole: it comes with the last part.
        input.onBuffer(part, sequence, given == parts.length ? header.b : -1, -1);
      }
    } finally {
      while (given < parts.length) {
        parts[given++].recycleBuffer();
      }
    }
  }

  @Override
  public void onMessage(MessageHeader header, byte[] payload) throws IOException {
    if (header.kind == Kind.FATAL) {
      Throwable error = Errors.error(payload);
      fail(new RemoteTransportException("Fatal error at " + peer + ".", peer.address(), error));
      return;
    }
    Subscription subscription = subscription(header);
    if (subscription == null) {
      return;
    }
    RemoteInputChannel input = subscription.input();
    switch (header.kind) {
      case Kind.PARTS -> subscription.expectParts(PartialBuffers.lengths(payload));
      case Kind.BACKLOG -> onBacklog(subscription, header.a);
      case Kind.ERROR -> onError(input, Errors.error(payload));
      default ->
          throw new IOException("The peer breaks Faro's protocol for Flink: " + header + ".");
    }
  }

  private void onBacklog(Subscription subscription, int backlog) {
    if (subscription.input().isReleased()) {
      cancel(subscription);
      return;
    }
    try {
      subscription.input().onSenderBacklog(backlog);
    } catch (Throwable thrown) {
      subscription.input().onError(thrown);
    }
  }

  private void onError(RemoteInputChannel input, Throwable error) {
    if (error.getClass() == PartitionNotFoundException.class) {
      input.onFailedPartitionRequest();
    } else {
      input.onError(new RemoteTransportException("Error at " + peer + ".", peer.address(), error));
    }
  }

  @Override
  void onLost(FaroException cause) {
    opened.completeExceptionally(peer.unreachable(cause));
    failAll(
        new RemoteTransportException(
            "Connection unexpectedly closed by "
                + peer
                + (cause == null
                    ? ""
                    : ": " + cause.code() + ", " + OptionNames.inFlinksKeys(cause.getMessage()))
                + ". This might indicate that the remote task manager was lost.",
            peer.address(),
            cause));
  }

  @Override
  void fail(Throwable cause) {
    failAll(
        cause instanceof RemoteTransportException remote
            ? remote
            : new LocalTransportException(
                cause.getMessage() + " (connection to " + peer + ")", peer.address(), cause));
    end();
    poller().closeNow(channel);
  }

  private void failAll(IOException cause) {
    if (failure != null) {
      return;
    }
    failure = cause;
    for (Subscription subscription : subscriptions) {
      if (subscription != null) {
        subscription.input().onError(cause);
      }
    }
    subscriptions.clear();
    credited.clear();
    ended.complete(null);
  }

  private Subscription subscription(MessageHeader header) {
    Subscription found =
        header.index >= 0 && header.index < subscriptions.size()
            ? subscriptions.get(header.index)
            : null;
    return found != null && found.generation() == header.generation ? found : null;
  }

  @Override
  public String toString() {
    return "the link to " + peer;
  }
}
