package io.faro.flink;

import java.nio.ByteBuffer;

/**
 * The header of a message, or of a piece of one. Little-endian:
 *
 * <pre>
 *  0  kind         1 byte, {@link Kind}
 *  1  type         1 byte, of a buffer: the ordinal of its DataType
 *  2  flags        1 byte
 *  3  (zero)
 *  4  here         bytes of the payload that follow in this frame
 *  8  index        \ of the request that the message is about: the side that requests gives the
 * 12  generation   / index, and counts the generation up when it gives an index again
 * 16  a, b, c      as the kind says
 * 28  total        bytes of the whole payload
 * </pre>
 *
 * A message whose payload does not fit a frame goes on in pieces of kind MORE, of which only
 * {@code here} counts. Nothing else comes in between.
 *
 * <p>Threads: one at a time.
 */
final class MessageHeader {
  static final int BYTES = 32;

  /** A buffer that is compressed. */
  static final byte COMPRESSED = 1;

  /** What messages say. The numbers travel. */
  static final class Kind {
    /** A piece of the message before. */
    static final byte MORE = 1;
    /** The message before ends here, and counts for nothing. */
    static final byte ABORT = 2;

    // From consumer to producer.
    /** a: initial credit. Payload: {@link Identities}. */
    static final byte REQUEST = 10;
    /** a: credits, that many more. */
    static final byte CREDIT = 11;
    static final byte RESUME = 12;
    static final byte ACKNOWLEDGE_ALL = 13;
    /** a: bytes. */
    static final byte BUFFER_SIZE = 14;
    /** a: subpartition. b: segment. */
    static final byte SEGMENT = 15;
    /** Payload: {@link Identities} of the partition, and the event. */
    static final byte TASK_EVENT = 16;
    static final byte CANCEL = 17;

    // From producer to consumer.
    /** a: sequence number. b: backlog. c: subpartition. Payload: the buffer. */
    static final byte BUFFER = 30;
    /**
     * The buffer that follows consists of several ones. Payload: the length of each, 4 bytes,
     * little-endian.
     */
    static final byte PARTS = 31;
    /** a: backlog. */
    static final byte BACKLOG = 32;
    /** Payload: {@link Errors}. */
    static final byte ERROR = 33;
    /** The producer's side of the link has failed. Payload: {@link Errors}. */
    static final byte FATAL = 34;

    /** {@link Identities} have 84 bytes. */
    private static final int REQUEST_LIMIT = 512;

    private Kind() {}

    /**
     * Most bytes that a consumer's message has behind its header; -1: a consumer sends no such
     * message.
     */
    static int mostFromConsumer(byte kind) {
      return switch (kind) {
        case REQUEST -> REQUEST_LIMIT;
        case CREDIT, RESUME, ACKNOWLEDGE_ALL, BUFFER_SIZE, SEGMENT, CANCEL -> 0;
        case TASK_EVENT -> LONG_LIMIT;
        default -> -1;
      };
    }

    /**
     * Most bytes that a producer's message has behind its header; -1: a producer sends no such
     * message.
     */
    static int mostFromProducer(byte kind) {
      return switch (kind) {
        case BACKLOG -> 0;
        case BUFFER, PARTS, ERROR, FATAL -> LONG_LIMIT; // of buffers the receiver's own have less
        default -> -1;
      };
    }
  }

  /**
   * The most bytes that an event, an error, or the lengths of parts may have. The sender keeps to
   * it, too.
   */
  static final int LONG_LIMIT = 64 << 20;

  byte kind;
  byte type;
  byte flags;
  int here;
  int index;
  int generation;
  int a;
  int b;
  int c;
  int total;

  /** Sets what every message has, and clears the rest. */
  MessageHeader of(byte kind, int index, int generation) {
    this.kind = kind;
    this.index = index;
    this.generation = generation;
    type = 0;
    flags = 0;
    a = 0;
    b = 0;
    c = 0;
    return this;
  }

  void copy(MessageHeader other) {
    of(other.kind, other.index, other.generation);
    type = other.type;
    flags = other.flags;
    a = other.a;
    b = other.b;
    c = other.c;
    here = other.here;
    total = other.total;
  }

  /** Into a little-endian buffer. */
  void write(ByteBuffer into, int at) {
    into.putInt(at, (kind & 0xff) | (type & 0xff) << 8 | (flags & 0xff) << 16);
    into.putInt(at + 4, here);
    into.putInt(at + 8, index);
    into.putInt(at + 12, generation);
    into.putInt(at + 16, a);
    into.putInt(at + 20, b);
    into.putInt(at + 24, c);
    into.putInt(at + 28, total);
  }

  /** From a little-endian buffer; each byte is read once. */
  void read(ByteBuffer from, int at) {
    int first = from.getInt(at);
    kind = (byte) first;
    type = (byte) (first >> 8);
    flags = (byte) (first >> 16);
    here = from.getInt(at + 4);
    index = from.getInt(at + 8);
    generation = from.getInt(at + 12);
    a = from.getInt(at + 16);
    b = from.getInt(at + 20);
    c = from.getInt(at + 24);
    total = from.getInt(at + 28);
  }

  @Override
  public String toString() {
    return "message " + kind + " of request " + index + "." + Integer.toUnsignedString(generation);
  }
}
