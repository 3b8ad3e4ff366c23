package io.faro.flink;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.apache.flink.runtime.io.network.buffer.Buffer;

/**
 * Takes the frames of a channel apart, and puts messages together that came in pieces. Nothing of a frame is used after
 * {@link #read}.
 *
 * <p>Threads: the poller's.
 */
final class MessageReader {
  /** Who gets the messages. What it is given is valid during the call, except the buffer and the array. */
  interface Receiver {
    /** Where the payload of a BUFFER message goes, from its beginning; null: nowhere. */
    Buffer openBuffer(MessageHeader header) throws IOException;

    /** A BUFFER message is complete; the buffer is what {@link #openBuffer} gave, and the receiver's again. */
    void onBuffer(MessageHeader header, Buffer buffer) throws IOException;

    /** Any other message is complete. */
    void onMessage(MessageHeader header, byte[] payload) throws IOException;
  }

  /** More than any event, error or list of identities has; against lengths that are none. */
  private static final int PAYLOAD_LIMIT = 1 << 30;

  private static final byte[] NONE = {};

  private final Receiver receiver;
  private final MessageHeader piece = new MessageHeader();
  private final MessageHeader message = new MessageHeader(); // that is being put together
  private ByteBuffer ring; // that frames lie in
  private ByteBuffer view; // of it
  private boolean open; // a message is incomplete
  private int filled; // bytes of its payload
  private Buffer buffer; // where that goes: to one of these
  private byte[] bytes;

  MessageReader(Receiver receiver) {
    this.receiver = receiver;
  }

  /**
   * @param in the ring, always the same object
   * @throws IOException if the peer breaks the protocol
   */
  void read(ByteBuffer in, int offset, int length) throws IOException {
    if (ring != in) {
      ring = in;
      view = in.duplicate().order(ByteOrder.LITTLE_ENDIAN);
    }
    for (int at = offset, end = offset + length; at < end; ) {
      require(end - at >= MessageHeader.BYTES, "a frame that ends within a header");
      piece.read(view, at);
      at += MessageHeader.BYTES;
      require(piece.here >= 0 && piece.here <= end - at, "a piece beyond its frame");
      take(at);
      at += piece.here;
    }
  }

  private void take(int at) throws IOException {
    if (piece.kind == MessageHeader.Kind.ABORT) {
      close();
      return;
    }
    if (piece.kind != MessageHeader.Kind.MORE) {
      begin();
    }
    require(open && piece.here <= message.total - filled, "a piece that is none of the message before");
    if (piece.here > 0) {
      fill(at);
    }
    if (filled == message.total) {
      finish();
    }
  }

  private void begin() throws IOException {
    require(!open, "a message within another one");
    require(piece.total >= 0 && piece.total <= PAYLOAD_LIMIT, "a payload of " + piece.total + " bytes");
    message.copy(piece);
    open = true;
    filled = 0;
    if (message.kind == MessageHeader.Kind.BUFFER) {
      buffer = receiver.openBuffer(message);
      require(buffer == null || message.total <= buffer.getMaxCapacity(), "a buffer that is larger than this side's");
    } else {
      bytes = message.total == 0 ? NONE : new byte[message.total];
    }
  }

  @SuppressWarnings("deprecation") // Flink warns of a segment that is shared. A buffer that was just requested is nobody else's.
  private void fill(int at) {
    if (buffer != null) {
      view.position(at);
      buffer.getMemorySegment().put(buffer.getMemorySegmentOffset() + filled, view, piece.here);
      view.clear();
    } else if (bytes != null) {
      view.get(at, bytes, filled, piece.here);
    }
    filled += piece.here;
  }

  private void finish() throws IOException {
    open = false;
    if (message.kind == MessageHeader.Kind.BUFFER) {
      Buffer full = buffer;
      buffer = null;
      if (full != null) {
        full.setSize(message.total);
      }
      receiver.onBuffer(message, full);
    } else {
      byte[] payload = bytes;
      bytes = null;
      receiver.onMessage(message, payload);
    }
  }

  /** Forgets the message that is incomplete. */
  void close() {
    open = false;
    bytes = null;
    if (buffer != null) {
      buffer.recycleBuffer();
      buffer = null;
    }
  }

  private static void require(boolean holds, String otherwise) throws IOException {
    if (!holds) {
      throw new IOException("The peer breaks Faro's protocol for Flink: " + otherwise + ".");
    }
  }
}
