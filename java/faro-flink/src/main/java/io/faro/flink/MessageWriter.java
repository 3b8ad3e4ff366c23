package io.faro.flink;

import io.faro.Outcome;
import io.faro.Poller;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Writes messages into the outgoing ring of a channel, many into a frame. One message at a time:
 * while one has not found room for all of itself, {@link #isIdle} is false, and {@link #resume}
 * goes on with it when there is room.
 *
 * <p>Threads: the poller's.
 */
final class MessageWriter {
  /**
   * A frame holds two buffers of Flink's default size: the peer reads the one while the next is
   * written.
   */
  private static final int FRAME_BYTES = 2 * ((32 << 10) + MessageHeader.BYTES);

  private final Poller poller;
  private final long channel;
  private final ByteBuffer ring;
  private final int frameBytes; // least and most of a claim are at most this
  private final MessageHeader header = new MessageHeader();
  private Payload payload; // null: the message has none
  private boolean writing; // a message that is not in the ring as a whole
  private boolean begun; // a piece of it is
  private boolean claimed;
  private int begin;
  private int at;
  private int end;

  MessageWriter(Poller poller, long channel, int leastFrameBytes) {
    this.poller = poller;
    this.channel = channel;
    ring = poller.outgoing(channel).duplicate().order(ByteOrder.LITTLE_ENDIAN);
    frameBytes = Math.min(leastFrameBytes, FRAME_BYTES);
  }

  /** Whether {@link #send} may be called. */
  boolean isIdle() {
    return !writing;
  }

  /** For {@link #send}: the header of the next message, without payload until that says so. */
  MessageHeader header(byte kind, int index, int generation) {
    return header.of(kind, index, generation);
  }

  /**
   * Writes the message of {@link #header}, as far as there is room. The payload, which may be null,
   * is released when it was copied, or when that has failed.
   *
   * @return whether that was all
   * @throws IOException if the payload cannot be read: then the peer sees nothing of the message
   */
  boolean send(Payload payload) throws IOException {
    this.payload = payload;
    header.total = payload == null ? 0 : payload.remaining();
    writing = true;
    begun = false;
    return resume();
  }

  /** Goes on. Returns, and throws, as {@link #send}. */
  boolean resume() throws IOException {
    while (writing) {
      int left = payload == null ? 0 : payload.remaining();
      if (!makeRoom(MessageHeader.BYTES + left)) {
        return false;
      }
      writePiece(Math.min(left, end - at - MessageHeader.BYTES));
      if (payload == null || payload.remaining() == 0) {
        finish();
      }
    }
    return true;
  }

  private void writePiece(int bytes) throws IOException {
    header.here = bytes;
    if (bytes > 0) {
      int from = at + MessageHeader.BYTES;
      try {
        payload.copyTo(ring.limit(from + bytes).position(from));
      } catch (IOException | RuntimeException unreadable) {
        abort();
        throw unreadable instanceof IOException as ? as : new IOException(unreadable);
      } finally {
        ring.clear();
      }
    }
    header.write(ring, at);
    at += MessageHeader.BYTES + bytes;
    begun = true;
    header.kind = MessageHeader.Kind.MORE;
  }

  // There is room for a header: it was made for the piece that has failed.
  private void abort() {
    if (begun) {
      header.kind = MessageHeader.Kind.ABORT;
      header.here = 0;
      header.write(ring, at);
      at += MessageHeader.BYTES;
    }
    finish();
  }

  private void finish() {
    writing = false;
    Payload written = payload;
    payload = null;
    if (written != null) {
      written.release();
    }
  }

  private boolean makeRoom(int bytes) {
    int wanted = Math.min(bytes, frameBytes);
    if (claimed && end - at >= wanted) {
      return true;
    }
    claimed = next(wanted) == Outcome.DONE;
    if (!claimed) {
      return false;
    }
    begin = poller.claimOffset();
    at = begin;
    end = begin + poller.claimLength();
    return true;
  }

  // What was written travels, and the next frame is claimed.
  private Outcome next(int wanted) {
    if (!claimed || at == begin) {
      return poller.claim(channel, wanted, frameBytes);
    }
    claimed = false; // also if this throws
    return poller.commitAndClaim(channel, at - begin, wanted, frameBytes);
  }

  /** What was written travels. */
  void flush() {
    if (claimed) {
      claimed = false;
      if (at > begin) {
        poller.commit(channel, at - begin);
        poller.post();
      }
    }
  }

  /** The channel has ended: gives back what was not written. */
  void close() {
    claimed = false;
    if (writing) {
      finish();
    }
  }
}
