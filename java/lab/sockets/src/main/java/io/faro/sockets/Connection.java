package io.faro.sockets;

import io.faro.RowBuffer;
import io.faro.RowCodec;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;

/**
 * To a worker of another process, and from it: a non-blocking socket, an outgoing buffer in which frames gather, and
 * an incoming one. A frame is a run of whole rows of one stage:
 *
 * <pre>
 *   0       4                12      14     16                                      little-endian
 *   +-------+----------------+-------+------+----------------------------------+
 *   | bytes | query: counter | stage | kind | rows                             |    kind 0: rows, 1: the end
 *   +-------+----------------+-------+------+----------------------------------+
 *     of rows                                 of one width: as they are; else each with its length (4 bytes) in front
 * </pre>
 *
 * Frames of queries that have ended are thrown away; at one of a query that has not begun here the connection waits.
 */
final class Connection implements Peer {
  private static final int HEADER = 16;
  private static final int QUERY = 4;
  private static final int STAGE = 12;
  private static final int KIND = 14;
  private static final short ROWS = 0;
  private static final short END = 1;
  private static final int LENGTH = Integer.BYTES;
  private static final int OUTGOING = 16 * 1024;
  private static final int INCOMING = 64 * 1024;
  private static final int NONE = -1;

  private final SocketsSettings settings;
  private final int peer; // number of the worker at the other end
  private final SocketChannel channel;
  private final SelectionKey key;

  private ByteBuffer outgoing = allocate(OUTGOING);
  private RowBuffer outgoingRows = RowBuffer.over(outgoing);
  private int frame; // where the open one begins
  private int stage = NONE; // whose it is; none is open

  private ByteBuffer incoming = allocate(INCOMING);
  private RowBuffer incomingRows = RowBuffer.over(incoming);
  private SocketsQuery query; // null: none runs
  private boolean isAhead; // the next frame is of a query that has not begun here

  /** Takes over the channel, which is non-blocking. */
  Connection(SocketsSettings settings, int peer, SocketChannel channel, Selector selector) throws IOException {
    this.settings = settings;
    this.peer = peer;
    this.channel = channel;
    key = channel.register(selector, SelectionKey.OP_READ, this);
  }

  static ByteBuffer allocate(int bytes) {
    return ByteBuffer.allocateDirect(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }

  // --- sending

  @Override
  public boolean tryPut(int stage, long row) {
    while (!openFrame(stage) || outgoing.remaining() < Long.BYTES) {
      if (!makeRoom(Long.BYTES)) {
        return false;
      }
    }
    outgoing.putLong(row);
    rowIsPut();
    return true;
  }

  @Override
  public <T> boolean tryPut(int stage, RowCodec<T> codec, T row) {
    int length = codec.rowBytes() == 0 ? LENGTH : 0;
    do {
      if (openFrame(stage)) {
        int at = outgoing.position() + length;
        int bytes = outgoingRows.tryWrite(codec, row, at);
        if (bytes != RowBuffer.NO_ROOM) {
          if (length != 0) {
            outgoing.putInt(at - LENGTH, bytes);
          }
          outgoing.position(at + bytes);
          rowIsPut();
          return true;
        }
      }
    } while (makeRoom(length + settings.checkedRow(stage, codec.maxBytes(row))));
    return false;
  }

  @Override
  public <T> boolean tryPut(int stage, RowCodec<T> codec, T row, ByteBuffer written, int bytes) {
    int length = codec.rowBytes() == 0 ? LENGTH : 0;
    while (!openFrame(stage) || outgoing.remaining() < length + bytes) {
      if (!makeRoom(length + bytes)) {
        return false;
      }
    }
    if (length != 0) {
      outgoing.putInt(bytes);
    }
    outgoing.put(outgoing.position(), written, 0, bytes).position(outgoing.position() + bytes);
    rowIsPut();
    return true;
  }

  private void rowIsPut() {
    if (settings.writesEachRow()) {
      flush();
    }
  }

  @Override
  public boolean tryPutEnd(int stage) {
    closeFrame();
    if (outgoing.remaining() < HEADER) {
      flush();
    }
    if (outgoing.remaining() < HEADER) {
      return false;
    }
    putHeader(stage, END);
    return true;
  }

  /** False if there is no room for its header. */
  private boolean openFrame(int stage) {
    if (this.stage == stage) {
      return true;
    }
    closeFrame();
    if (outgoing.remaining() < HEADER) {
      return false;
    }
    frame = outgoing.position();
    this.stage = stage;
    putHeader(stage, ROWS);
    return true;
  }

  private void putHeader(int stage, short kind) {
    outgoing.putInt(0).putLong(query.number()).putShort((short) stage).putShort(kind);
  }

  private void closeFrame() {
    if (stage != NONE) {
      int bytes = outgoing.position() - frame - HEADER;
      outgoing.putInt(frame, bytes);
      if (bytes == 0) {
        outgoing.position(frame);
      }
      stage = NONE;
    }
  }

  /** For a row that needs up to that many bytes; false if the socket takes nothing now. */
  private boolean makeRoom(int bytes) {
    closeFrame();
    int before = outgoing.position();
    if (before == 0) {
      outgoing = allocate(HEADER + bytes);
      outgoingRows = RowBuffer.over(outgoing);
      return true;
    }
    flush();
    return outgoing.position() < before;
  }

  @Override
  public boolean flush() {
    closeFrame();
    if (outgoing.position() == 0) {
      return true;
    }
    try {
      outgoing.flip();
      channel.write(outgoing);
    } catch (IOException problem) {
      throw ended(problem.getMessage());
    } finally {
      outgoing.compact();
    }
    return outgoing.position() == 0;
  }

  @Override
  public void wakeWhenRoom() {
    watch(outgoing.position() > 0 ? SelectionKey.OP_WRITE : 0);
  }

  private void watch(int writing) {
    int wanted = writing | (isAhead ? 0 : SelectionKey.OP_READ);
    if (key.interestOps() != wanted) {
      key.interestOps(wanted);
    }
  }

  // --- receiving

  /** The socket has something to read, or room. */
  void ready() {
    if (key.isWritable()) {
      flush();
      wakeWhenRoom();
    }
    if (key.isReadable()) {
      read();
    }
  }

  private void read() {
    int count;
    try {
      count = channel.read(incoming);
    } catch (IOException problem) {
      throw ended(problem.getMessage());
    }
    if (count < 0) {
      throw ended("it was closed there");
    }
    takeFrames();
  }

  private void takeFrames() {
    int limit = Math.max(OUTGOING, LENGTH + settings.rowLimitBytes()); // of a frame's rows
    int end = incoming.position();
    int at = 0;
    int wanted = HEADER; // bytes from there on, for the next frame
    while (end - at >= HEADER) {
      int bytes = incoming.getInt(at);
      if (bytes < 0 || bytes > limit) {
        throw ended("a frame of " + bytes + " bytes came");
      }
      wanted = HEADER + bytes;
      if (end - at < wanted) {
        break;
      }
      long of = incoming.getLong(at + QUERY);
      isAhead = of > query.number();
      if (isAhead) {
        watch(key.interestOps() & SelectionKey.OP_WRITE);
        break;
      }
      if (of == query.number()) {
        takeFrame(at, bytes);
      }
      at += wanted;
      wanted = HEADER;
    }
    incoming.flip().position(at);
    incoming.compact();
    if (wanted > incoming.capacity()) {
      incoming = allocate(wanted).put(incoming.flip());
      incomingRows = RowBuffer.over(incoming);
    }
  }

  private void takeFrame(int at, int bytes) {
    int stage = incoming.getShort(at + STAGE);
    if (stage < 0 || stage >= query.stages()) {
      throw ended("a frame of stage " + stage + " came");
    }
    if (incoming.getShort(at + KIND) == END) {
      query.rowsOf(stage).ended();
    } else if (!query.rowsOf(stage).take(incoming, incomingRows, at + HEADER, bytes)) {
      throw ended("a frame came that ends within a row");
    }
  }

  @Override
  public void begin(SocketsQuery query) {
    this.query = query;
    if (isAhead) {
      isAhead = false;
      takeFrames();
      watch(0);
    }
  }

  @Override
  public void end() {
    closeFrame();
    query = null;
    outgoingRows.releaseOwnership();
    incomingRows.releaseOwnership();
  }

  private RuntimeException ended(String why) {
    return query.ended("the connection to worker " + peer + " has ended: " + why);
  }

  @Override
  public void close() {
    try {
      channel.close();
    } catch (IOException problem) {
      // Its descriptor is gone nevertheless.
    }
  }
}
