package io.faro.flink;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.apache.flink.core.memory.MemorySegmentFactory;
import org.apache.flink.runtime.io.network.buffer.Buffer;
import org.apache.flink.runtime.io.network.buffer.Buffer.DataType;
import org.apache.flink.runtime.io.network.buffer.FreeingBufferRecycler;
import org.apache.flink.runtime.io.network.buffer.NetworkBuffer;

/**
 * Takes the frames of a channel apart, and puts messages together that came in pieces. Nothing of a
 * frame is used after {@link #read}.
 *
 * <p>Threads: the poller's.
 */
final class MessageReader {
  /**
   * Gets the messages. What it is given is valid during the call, except the buffer and the array.
   */
  interface Receiver {
    /** Most bytes of the payload of such a message; -1: the peer is not to send one. */
    int payloadLimit(byte kind);

    /** Where the payload of a BUFFER message with data goes, from its beginning; null: nowhere. */
    Buffer openBuffer(MessageHeader header) throws IOException;

    /**
     * A BUFFER message is complete. Of data the buffer is what {@link #openBuffer} gave, of an
     * event one of its own; it is the receiver's.
     */
    void onBuffer(MessageHeader header, Buffer buffer) throws IOException;

    /** Any other message is complete. */
    void onMessage(MessageHeader header, byte[] payload) throws IOException;
  }

  /**
   * What is allocated for a payload whose length is only announced. It grows with what has come.
   */
  private static final int FIRST_BYTES = 4 << 10;

  private static final byte[] NONE = {};
  private static final DataType[] TYPES = DataType.values();

  private final Receiver receiver;
  private final MessageHeader piece = new MessageHeader();
  private final MessageHeader message = new MessageHeader(); // that is being put together
  private ByteBuffer ring; // that frames lie in
  private ByteBuffer view; // of it
  private boolean open; // a message is incomplete
  private int filled; // bytes of its payload
  private Buffer buffer; // where that goes: to one of these; of data for nobody to none
  private byte[] bytes; // longer only by what will come

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
    require(
        open && piece.here <= message.total - filled, "a piece that is none of the message before");
    if (piece.here > 0) {
      fill(at);
    }
    if (filled == message.total) {
      finish();
    }
  }

  private void begin() throws IOException {
    require(!open, "a message within another one");
    int most = receiver.payloadLimit(piece.kind);
    require(most >= 0, "a message of kind " + piece.kind + " that this side does not take");
    require(
        piece.total >= 0 && piece.total <= most,
        "a payload of " + piece.total + " bytes in a message of kind " + piece.kind
            + ", which has at most " + most);
    message.copy(piece);
    open = true;
    filled = 0;
    if (isOfData()) {
      buffer = receiver.openBuffer(message);
      require(
          buffer == null || message.total <= buffer.getMaxCapacity(),
          "a buffer that is larger than this side's");
    } else {
      bytes = message.total == 0 ? NONE : new byte[Math.min(message.total, FIRST_BYTES)];
    }
  }

  private boolean isOfData() throws IOException {
    return message.kind == MessageHeader.Kind.BUFFER && type().isBuffer();
  }

  private DataType type() throws IOException {
    require(message.type >= 0 && message.type < TYPES.length, "a buffer of type " + message.type);
    return TYPES[message.type];
  }

  // Flink warns of a segment that is shared. A buffer that was just requested is nobody else's.
  @SuppressWarnings("deprecation")
  private void fill(int at) {
    if (buffer != null) {
      view.position(at);
      buffer.getMemorySegment().put(buffer.getMemorySegmentOffset() + filled, view, piece.here);
      view.clear();
    } else if (bytes != null) {
      makeRoom(filled + piece.here);
      view.get(at, bytes, filled, piece.here);
    }
    filled += piece.here;
  }

  // Twice as much each time, and never more than there will be.
  private void makeRoom(int needed) {
    if (needed > bytes.length) {
      bytes =
          Arrays.copyOf(bytes, (int) Math.min(message.total, Math.max(needed, 2L * bytes.length)));
    }
  }

  private void finish() throws IOException {
    open = false;
    byte[] payload = bytes;
    Buffer full = buffer;
    bytes = null;
    buffer = null;
    if (message.kind != MessageHeader.Kind.BUFFER) {
      receiver.onMessage(message, payload);
      return;
    }
    if (payload != null) {
      full =
          new NetworkBuffer(
              MemorySegmentFactory.wrap(payload), FreeingBufferRecycler.INSTANCE, type());
    }
    if (full != null) {
      full.setSize(message.total);
    }
    receiver.onBuffer(message, full);
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
