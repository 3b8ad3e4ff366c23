package io.faro.flink;

import io.faro.ChannelInfo;
import io.faro.FaroException;
import io.faro.flink.MessageHeader.Kind;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Map;
import org.apache.flink.runtime.io.network.TaskEventPublisher;
import org.apache.flink.runtime.io.network.buffer.Buffer;
import org.apache.flink.runtime.io.network.partition.PartitionNotFoundException;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.runtime.io.network.partition.ResultPartitionProvider;
import org.apache.flink.runtime.io.network.partition.ResultSubpartitionView.AvailabilityWithBacklog;
import org.apache.flink.runtime.io.network.partition.consumer.InputChannel.BufferAndAvailability;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The producing side of a link: reads the subpartitions that the other side has requested, by
 * turns, one buffer at a time.
 *
 * <p>A buffer is taken from a subpartition only when the one before is in the ring as a whole.
 *
 * <p>Threads: the I/O thread's.
 */
final class ProducerLink extends Link {
  private static final Logger LOG = LoggerFactory.getLogger(ProducerLink.class);

  private final ResultPartitionProvider partitions;
  private final TaskEventPublisher events;
  private final Map<String, LinkCounts> countsOf; // by transport
  private final ArrayDeque<SubpartitionReader> available = new ArrayDeque<>();
  private final BufferPayload payload = new BufferPayload();
  private LinkCounts counts; // null until the channel has opened
  private SubpartitionReader[] readers = new SubpartitionReader[16]; // by the index of the request
  // How many were used by now; a consumer uses the next one only when none of them is free.
  private int indexes;
  private SubpartitionReader sending; // whose buffer was begun last
  private Buffer whole; // of several ones, whose lengths were begun to be sent; null: none
  private BufferAndAvailability next; // that {@code whole} is of
  private int subpartition; // of {@code next}
  private String peer = "a consumer";
  private boolean failed; // the peer is told why; then the channel closes
  private volatile boolean sharesMemory; // with the peer

  ProducerLink(
      IoThread io,
      long channel,
      ResultPartitionProvider partitions,
      TaskEventPublisher events,
      LinkMemory.Reservation reservation,
      Map<String, LinkCounts> countsOf) {
    super(io, channel, reservation);
    this.partitions = partitions;
    this.events = events;
    this.countsOf = countsOf;
  }

  @Override
  void onOpened(ChannelInfo info) {
    peer = "remote task manager '" + info.address() + " [ " + info.peer() + " ]'";
    LOG.info("Produces for {} over {}", peer, info.transport());
    counts = countsOf.get(info.transport());
    sharesMemory = info.transport().equals("shm");
    super.onOpened(info);
  }

  /** Whether what is sent is only copied: to the memory that the peer reads. Threads: any. */
  boolean sharesMemory() {
    return sharesMemory;
  }

  @Override
  public int payloadLimit(byte kind) {
    return Kind.mostFromConsumer(kind);
  }

  @Override
  public Buffer openBuffer(MessageHeader header) throws IOException {
    throw unexpected(header);
  }

  @Override
  public void onBuffer(MessageHeader header, Buffer buffer) throws IOException {
    throw unexpected(header);
  }

  @Override
  public void onMessage(MessageHeader header, byte[] message) throws IOException {
    if (failed) {
      return;
    }
    if (header.kind == Kind.REQUEST) {
      request(header, Identities.request(message));
      return;
    }
    SubpartitionReader reader = reader(header);
    if (header.kind == Kind.TASK_EVENT) {
      publish(header, TaskEvents.of(message));
      return;
    }
    if (reader == null) {
      return; // it was cancelled, or its partition was not found
    }
    switch (header.kind) {
      case Kind.CREDIT -> {
        reader.addCredit(header.a);
        enqueueIfAvailable(reader);
      }
      case Kind.RESUME -> {
        reader.resumeConsumption();
        enqueueIfAvailable(reader);
      }
      case Kind.ACKNOWLEDGE_ALL -> reader.acknowledgeAllRecordsProcessed();
      case Kind.BUFFER_SIZE -> reader.notifyNewBufferSize(header.a);
      case Kind.SEGMENT -> reader.notifyRequiredSegmentId(header.a, header.b);
      case Kind.CANCEL -> remove(reader);
      default -> throw unexpected(header);
    }
  }

  private static IOException unexpected(MessageHeader header) {
    return new IOException("The peer breaks Faro's protocol for Flink: " + header + ".");
  }

  private SubpartitionReader reader(MessageHeader header) {
    SubpartitionReader found =
        header.index >= 0 && header.index < readers.length ? readers[header.index] : null;
    return found != null && found.generation() == header.generation ? found : null;
  }

  private void request(MessageHeader header, Identities.Request request) throws IOException {
    if (header.index < 0 || header.index > indexes || header.a < 0) {
      throw unexpected(header);
    }
    if (header.index == readers.length) {
      readers = Arrays.copyOf(readers, 2 * readers.length);
    }
    indexes = Math.max(indexes, header.index + 1);
    if (readers[header.index] != null) {
      remove(readers[header.index]);
    }
    SubpartitionReader reader =
        new SubpartitionReader(this, header.index, header.generation, request.receiver(), header.a);
    readers[header.index] = reader;
    try {
      reader.requestSubpartitionViewOrRegisterListener(
          partitions, request.partition(), request.subpartitions());
    } catch (IOException | RuntimeException refused) {
      failReader(reader, refused);
    }
  }

  private void publish(MessageHeader header, TaskEvents event) {
    if (!events.publish(event.partition(), event.event())) {
      sendError(
          header.index,
          header.generation,
          new IllegalArgumentException("Task event receiver not found."));
    }
  }

  /** Nobody has registered the partition in time. */
  void partitionNotFound(SubpartitionReader reader, ResultPartitionID partition) {
    if (readers[reader.index()] == reader) {
      failReader(reader, new PartitionNotFoundException(partition));
    }
  }

  private void failReader(SubpartitionReader reader, Throwable cause) {
    remove(reader);
    sendError(reader.index(), reader.generation(), cause);
  }

  private void sendError(int index, int generation, Throwable cause) {
    LOG.debug("{} is told of an error", peer, cause);
    send(new ControlMessage(Kind.ERROR, index, generation, 0, 0, Errors.of(cause)));
  }

  private void remove(SubpartitionReader reader) {
    if (readers[reader.index()] == reader) {
      readers[reader.index()] = null;
    }
    if (reader.isRegisteredAsAvailable()) {
      available.remove(reader);
      reader.setRegisteredAsAvailable(false);
    }
    reader.releaseAllResources();
  }

  /**
   * Looks whether a reader has something to send, after data, credits or leave to go on have come.
   */
  void enqueueIfAvailable(SubpartitionReader reader) {
    if (reader.isRegisteredAsAvailable()
        || reader.isCancelled()
        || !reader.hasView()
        || isEnded()) {
      return;
    }
    AvailabilityWithBacklog state;
    try {
      state = reader.getAvailabilityAndBacklog();
    } catch (RuntimeException broken) {
      failReader(reader, broken);
      return;
    }
    if (state.isAvailable()) {
      enqueue(reader);
      wantsToWrite();
    } else if (state.getBacklog() > 0 && reader.needAnnounceBacklog()) {
      send(
          new ControlMessage(
              Kind.BACKLOG, reader.index(), reader.generation(), state.getBacklog(), 0, null));
    }
  }

  private void enqueue(SubpartitionReader reader) {
    available.add(reader);
    reader.setRegisteredAsAvailable(true);
  }

  @Override
  boolean writeOthers(MessageWriter into) throws IOException {
    if (whole != null && !writeWhole(into)) {
      return false;
    }
    for (SubpartitionReader reader; (reader = available.poll()) != null; ) {
      reader.setRegisteredAsAvailable(false);
      if (!writeNext(reader, into)) {
        return false;
      }
    }
    return true;
  }

  private boolean writeNext(SubpartitionReader reader, MessageWriter into) throws IOException {
    try {
      subpartition = reader.peekNextBufferSubpartitionId();
      next = reader.getNextBuffer();
    } catch (IOException | RuntimeException unreadable) {
      failReader(reader, unreadable);
      return writeControl(into);
    }
    if (next == null) {
      if (reader.isReleased() && reader.getFailureCause() != null) {
        sendError(reader.index(), reader.generation(), reader.getFailureCause());
        return writeControl(into);
      }
      return true;
    }
    if (next.moreAvailable()) {
      enqueue(reader);
    }
    sending = reader;
    if (!next.buffer().isBuffer() && next.buffer().readableBytes() > MessageHeader.LONG_LIMIT) {
      String tooLong =
          "An event of " + next.buffer().readableBytes() + " bytes; Faro carries "
              + MessageHeader.LONG_LIMIT + ".";
      next.buffer().recycleBuffer();
      next = null;
      failReader(reader, new IOException(tooLong));
      return writeControl(into);
    }
    if (PartialBuffers.isOf(next.buffer())) {
      whole = next.buffer();
      into.header(Kind.PARTS, reader.index(), reader.generation());
      return into.send(Payload.of(PartialBuffers.lengths(whole))) && writeWhole(into);
    }
    return writeBuffer(into);
  }

  private boolean writeWhole(MessageWriter into) throws IOException {
    whole = null;
    return writeBuffer(into);
  }

  private boolean writeBuffer(MessageWriter into) throws IOException {
    Buffer buffer = next.buffer();
    MessageHeader header = into.header(Kind.BUFFER, sending.index(), sending.generation());
    header.type = (byte) buffer.getDataType().ordinal();
    header.flags = buffer.isCompressed() ? MessageHeader.COMPRESSED : 0;
    header.a = next.getSequenceNumber();
    header.b = next.buffersInBacklog();
    header.c = subpartition;
    next = null;
    payload.of(buffer);
    counts.sent(payload.remaining());
    try {
      return into.send(payload);
    } catch (IOException unreadable) {
      onUnreadable(unreadable);
      return writeControl(into);
    }
  }

  @Override
  void onUnreadable(IOException cause) {
    if (readers[sending.index()] == sending) {
      failReader(sending, cause);
    }
  }

  @Override
  void onLost(FaroException cause) {
    if (cause != null) {
      LOG.info("{} has gone: {}", peer, OptionNames.inFlinksKeys(cause.getMessage()));
    }
    releaseAll();
  }

  @Override
  void fail(Throwable cause) {
    if (failed) {
      return;
    }
    failed = true;
    LOG.error("Encountered error while consuming partitions (connection to {})", peer, cause);
    releaseAll();
    send(new ControlMessage(Kind.FATAL, 0, 0, 0, 0, Errors.of(cause)));
    write();
    poller().drain(channel);
  }

  private void releaseAll() {
    if (whole != null) {
      whole.recycleBuffer();
      whole = null;
    }
    for (SubpartitionReader reader : readers) {
      if (reader != null) {
        remove(reader);
      }
    }
  }

  @Override
  public String toString() {
    return "the link to " + peer;
  }
}
