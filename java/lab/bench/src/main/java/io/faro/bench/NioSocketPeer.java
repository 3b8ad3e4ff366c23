package io.faro.bench;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;

/**
 * To a worker of another process.
 *
 * <pre>
 *   0        2       3      4                   12     little-endian
 *   +--------+-------+------+--------------------+
 *   | length | stage | kind |        row         |    length 8; kind 0 row, 1 end
 *   +--------+-------+------+--------------------+
 * </pre>
 */
final class NioSocketPeer implements NioPeer {
  private static final int FRAME = 4 + Long.BYTES;
  private static final int OUTGOING = 16 * 1024;
  private static final int INCOMING = 64 * 1024;
  private static final int ROW = Long.BYTES;
  private static final int END = Long.BYTES | 1 << 24;

  SelectionKey key;

  private final SocketChannel channel;
  private final boolean writesEachRow;
  private final ByteBuffer outgoing = allocate(OUTGOING);
  private final ByteBuffer incoming = allocate(INCOMING);
  private boolean watched;

  NioSocketPeer(SocketChannel channel, boolean writesEachRow) {
    this.channel = channel;
    this.writesEachRow = writesEachRow;
  }

  private static ByteBuffer allocate(int bytes) {
    return ByteBuffer.allocateDirect(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }

  @Override
  public boolean put(int stage, long n) {
    if (outgoing.remaining() < FRAME && !hasRoom()) {
      return false;
    }
    int at = outgoing.position();
    outgoing.putInt(at, ROW | stage << 16).putLong(at + 4, n).position(at + FRAME);
    if (writesEachRow) {
      flush();
    }
    return true;
  }

  @Override
  public boolean hasRoom() {
    if (outgoing.remaining() < FRAME) {
      flush();
    }
    return outgoing.remaining() >= FRAME;
  }

  @Override
  public void putEnd(int stage) {
    outgoing.putInt(END | stage << 16).putLong(0);
  }

  @Override
  public boolean flush() {
    if (outgoing.position() == 0) {
      return true;
    }
    try {
      outgoing.flip();
      channel.write(outgoing);
      outgoing.compact();
    } catch (IOException problem) {
      throw new UncheckedIOException(problem);
    }
    return outgoing.position() == 0;
  }

  @Override
  public void watchWritable() {
    boolean wanted = outgoing.position() > 0;
    if (wanted != watched) {
      key.interestOps(wanted ? SelectionKey.OP_READ | SelectionKey.OP_WRITE : SelectionKey.OP_READ);
      watched = wanted;
    }
  }

  /** The socket is ready. */
  void ready(NioWorker worker) {
    if (key.isWritable()) {
      flush();
      watchWritable();
    }
    if (key.isReadable()) {
      read(worker);
    }
  }

  private void read(NioWorker worker) {
    try {
      if (channel.read(incoming) < 0) {
        throw new IOException("a node of the benchmark has died");
      }
    } catch (IOException problem) {
      throw new UncheckedIOException(problem);
    }
    int end = incoming.position();
    int at = 0;
    for (; at + FRAME <= end; at += FRAME) {
      int header = incoming.getInt(at);
      int stage = header >>> 16 & 0xff;
      if (header >>> 24 == 0) {
        worker.arrived(stage, incoming.getLong(at + 4));
      } else {
        worker.ended(stage);
      }
    }
    incoming.flip().position(at);
    incoming.compact();
  }

  @Override
  public void close() throws IOException {
    channel.close();
  }
}
