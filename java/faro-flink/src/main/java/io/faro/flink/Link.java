package io.faro.flink;

import io.faro.ChannelInfo;
import io.faro.FaroException;
import io.faro.Poller;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One side of a channel between two TaskManagers, which the consuming one has dialled. Messages
 * that are not buffers wait in a queue for room.
 *
 * <p>Threads: the I/O thread's.
 */
abstract class Link implements MessageReader.Receiver {
  private static final Logger LOG = LoggerFactory.getLogger(Link.class);

  final IoThread io;
  final long channel;
  private final ArrayDeque<ControlMessage> control = new ArrayDeque<>();
  private final LinkMemory.Reservation reservation;
  private MessageReader reader = new MessageReader(this); // null: the channel has closed
  private MessageWriter writer; // null until the channel has opened
  private boolean blocked; // no room: until ROOM
  private boolean listed; // among the links that the I/O thread has to write
  private boolean ended; // nothing is sent or received any more

  Link(IoThread io, long channel, LinkMemory.Reservation reservation) {
    this.io = io;
    this.reservation = reservation;
    this.channel = channel;
  }

  /** A message without a buffer, to be sent as soon as there is room. */
  record ControlMessage(byte kind, int index, int generation, int a, int b, byte[] payload) {
    ControlMessage(byte kind, int index, int generation) {
      this(kind, index, generation, 0, 0, null);
    }
  }

  /** The channel has opened. */
  void onOpened(ChannelInfo info) {
    writer = new MessageWriter(io.poller(), channel, info.leastFrameBytes());
    wantsToWrite();
  }

  final void onFrame(ByteBuffer ring, int offset, int length) {
    if (ended) {
      return;
    }
    try {
      reader.read(ring, offset, length);
    } catch (Throwable thrown) {
      fail(thrown);
    }
  }

  final void onRoom() {
    blocked = false;
    wantsToWrite();
  }

  /**
   * The channel has closed, and its memory was given back. {@code cause}: null if it was drained.
   * Whoever still refers to the link refers to no ring by it.
   */
  final void onClosed(FaroException cause) {
    end();
    reader = null;
    writer = null;
    reservation.close();
    onLost(cause);
  }

  final boolean isEnded() {
    return ended;
  }

  /** Nothing is sent or received from now on. What waits is given back. */
  final void end() {
    ended = true;
    control.clear();
    if (reader != null) {
      reader.close();
    }
    if (writer != null) {
      writer.close();
    }
  }

  /**
   * What is left of the link fails with that cause. It may be null: the peer has drained the
   * channel.
   */
  abstract void onLost(FaroException cause);

  /** Something on this side has failed that concerns the whole link. */
  abstract void fail(Throwable cause);

  final void send(ControlMessage message) {
    if (!ended) {
      control.add(message);
      wantsToWrite();
    }
  }

  /** {@link #write} is called before the I/O thread sleeps. */
  final void wantsToWrite() {
    if (!listed && !blocked && writer != null && !ended) {
      listed = true;
      io.list(this);
    }
  }

  /** Writes what there is, as far as there is room. */
  final void write() {
    listed = false;
    if (ended || blocked) {
      return;
    }
    try {
      if (!writeAll(writer)) {
        blocked = true;
      }
      writer.flush();
    } catch (FaroException closing) {
      LOG.debug("Nothing can be written to {} any more", this, closing); // CLOSED will come
      blocked = true;
    } catch (Throwable thrown) {
      fail(thrown);
    }
  }

  private boolean writeAll(MessageWriter into) throws IOException {
    return resume(into) && writeControl(into) && writeOthers(into);
  }

  private boolean resume(MessageWriter into) throws IOException {
    if (into.isIdle()) {
      return true;
    }
    try {
      return into.resume();
    } catch (IOException unreadable) {
      onUnreadable(unreadable);
      return true;
    }
  }

  /** Writes the queue. False: there is no room, and ROOM will come. */
  final boolean writeControl(MessageWriter into) throws IOException {
    for (ControlMessage next; (next = control.poll()) != null; ) {
      MessageHeader header = into.header(next.kind, next.index, next.generation);
      header.a = next.a;
      header.b = next.b;
      if (!into.send(next.payload == null ? null : Payload.of(next.payload))) {
        return false;
      }
    }
    return true;
  }

  /** Writes what is not in the queue. False: there is no room. */
  abstract boolean writeOthers(MessageWriter into) throws IOException;

  /** The payload of the message that was begun last cannot be read. */
  abstract void onUnreadable(IOException cause) throws IOException;

  final Poller poller() {
    return io.poller();
  }
}
