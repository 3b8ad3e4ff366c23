package io.faro.bench;

import java.io.Closeable;
import java.io.EOFException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SocketChannel;

/**
 * The benchmark's own connection between its nodes, in the bytes of {@code
 * native/lab/bench/control_socket.h}: messages of 64-bit little-endian words, each with their number in
 * front.
 */
final class ControlSocket implements Closeable {
  private static final long WORD_LIMIT = 1 << 24;

  private final SocketChannel channel;

  ControlSocket(SocketChannel channel) throws IOException {
    this.channel = channel;
    channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
  }

  /** Dials until someone answers or the time limit has passed. */
  static SocketChannel dial(InetSocketAddress address, long limitNanos) throws IOException {
    long deadline = System.nanoTime() + limitNanos;
    while (true) {
      try {
        return SocketChannel.open(address);
      } catch (IOException refused) {
        if (System.nanoTime() > deadline) {
          throw new IOException(address + " cannot be reached", refused);
        }
        java.util.concurrent.locks.LockSupport.parkNanos(20_000_000);
      }
    }
  }

  void send(long... words) throws IOException {
    ByteBuffer bytes = allocate(words.length + 1).putLong(words.length);
    for (long word : words) {
      bytes.putLong(word);
    }
    bytes.flip();
    while (bytes.hasRemaining()) {
      channel.write(bytes);
    }
  }

  /** The next message, which must be of this kind (its first word) and have at least that many words. */
  long[] receive(long kind, int leastWords) throws IOException {
    long count = read(allocate(1)).getLong();
    if (count < leastWords || count > WORD_LIMIT) {
      throw new IOException("a benchmark message of " + count + " words");
    }
    ByteBuffer bytes = read(allocate((int) count));
    long[] words = new long[(int) count];
    bytes.asLongBuffer().get(words);
    if (words[0] != kind) {
      throw new IOException("an unexpected benchmark message of kind " + words[0]);
    }
    return words;
  }

  /** Returns when the other end has closed. */
  void awaitEnd() throws IOException {
    while (channel.read(allocate(1)) >= 0) {}
  }

  private ByteBuffer read(ByteBuffer bytes) throws IOException {
    while (bytes.hasRemaining()) {
      if (channel.read(bytes) < 0) {
        throw new EOFException("a node closed the benchmark's connection");
      }
    }
    return bytes.flip();
  }

  private static ByteBuffer allocate(int words) {
    return ByteBuffer.allocate(words * Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
  }

  @Override
  public void close() throws IOException {
    channel.close();
  }
}
