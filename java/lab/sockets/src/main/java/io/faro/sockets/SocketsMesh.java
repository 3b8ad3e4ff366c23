package io.faro.sockets;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.net.StandardSocketOptions;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;

/**
 * The sockets of a node: one for each pair of a worker here and one of another process. The higher process dials, and
 * says between which workers the connection is: {@code MAGIC}, from, to; 4 bytes each.
 *
 * <p>Threads: those of its workers; else one.
 */
public final class SocketsMesh implements AutoCloseable {
  private static final int MAGIC = 0x6661726f;
  private static final int BACKLOG = 1024;
  private static final int HELLO_MS = 10_000; // whoever connects says what it wants, or is none of ours: busy ones late
  private static final long DIAL_AGAIN_NANOS = Duration.ofMillis(10).toNanos();

  private final SocketsSettings settings;
  private final int first; // of the workers here
  private final SocketsWorker[] workers; // of this node; null: not made yet
  private final long deadlineNanos; // for connecting
  private String refused = ""; // who connected last of those that are none of ours, and why

  private SocketsMesh(SocketsSettings settings) {
    this.settings = settings;
    first = settings.firstWorker();
    workers = new SocketsWorker[settings.workers()];
    deadlineNanos = System.nanoTime() + settings.connectLimit().toNanos();
  }

  /**
   * Connects to all other nodes; blocks for a limited time.
   *
   * @throws IOException if it cannot be done; nothing is left open then
   */
  public static SocketsMesh open(SocketsSettings settings) throws IOException {
    SocketsMesh mesh = new SocketsMesh(settings);
    try (ServerSocketChannel listener = ServerSocketChannel.open()) {
      listener.bind(settings.address(settings.node()), BACKLOG);
      for (int i = 0; i < mesh.workers.length; i++) {
        mesh.workers[i] = new SocketsWorker(mesh.first + i, settings);
      }
      mesh.connectLocal();
      mesh.dial();
      mesh.accept(listener.socket());
      return mesh;
    } catch (IOException problem) {
      mesh.close();
      throw new IOException("sockets of node " + settings.node() + ": " + problem.getMessage(), problem);
    } catch (RuntimeException problem) {
      mesh.close();
      throw problem;
    }
  }

  private void connectLocal() {
    for (SocketsWorker one : workers) {
      for (SocketsWorker other : workers) {
        if (one != other) {
          one.connect(other);
        }
      }
    }
  }

  private void dial() throws IOException {
    for (SocketsWorker worker : workers) {
      for (int peer = 0; peer < first; peer++) {
        SocketChannel channel = dial(settings.address(peer / workers.length));
        try {
          DataOutputStream hello = new DataOutputStream(channel.socket().getOutputStream());
          hello.writeInt(MAGIC);
          hello.writeInt(worker.number());
          hello.writeInt(peer);
        } catch (IOException problem) {
          channel.close();
          throw problem;
        }
        connect(worker, peer, channel);
      }
    }
  }

  private SocketChannel dial(InetSocketAddress address) throws IOException {
    while (true) {
      SocketChannel channel = SocketChannel.open();
      try {
        channel.socket().connect(address, millisLeft("dialling " + address));
        return channel;
      } catch (SocketException refused) { // that node is not so far yet
        channel.close();
        LockSupport.parkNanos(DIAL_AGAIN_NANOS);
      } catch (IOException problem) {
        channel.close();
        throw problem;
      }
    }
  }

  private void accept(ServerSocket listener) throws IOException {
    int missing = (settings.workerCount() - first - workers.length) * workers.length;
    while (missing > 0) {
      listener.setSoTimeout(millisLeft(missing + " connections of other nodes are missing" + refused));
      try {
        if (greet(listener.accept().getChannel())) {
          missing--;
        }
      } catch (SocketTimeoutException late) {
        // Told above, with what is missing.
      }
    }
  }

  /** False, and the channel is closed, if whoever has connected is no worker that is expected. */
  private boolean greet(SocketChannel channel) throws IOException {
    String why;
    try {
      channel.socket().setSoTimeout(Math.min(HELLO_MS, millisLeft("nothing was said by " + channel.getRemoteAddress())));
      DataInputStream hello = new DataInputStream(channel.socket().getInputStream());
      int magic = hello.readInt();
      int from = hello.readInt();
      int to = hello.readInt() - first;
      if (magic == MAGIC && from >= first + workers.length && from < settings.workerCount() && to >= 0 && to < workers.length
          && !workers[to].isConnected(from)) {
        connect(workers[to], from, channel);
        return true;
      }
      why = "said that it is no worker that is missing here";
    } catch (SocketTimeoutException late) {
      why = "said nothing in time";
    } catch (IOException problem) {
      why = "did not say what it wants: " + problem;
    }
    refused = "; " + channel.getRemoteAddress() + " was refused, it " + why;
    channel.close();
    return false;
  }

  /** Takes over the channel. */
  private static void connect(SocketsWorker worker, int peer, SocketChannel channel) throws IOException {
    try {
      channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
      channel.configureBlocking(false);
      worker.connect(peer, channel);
    } catch (IOException problem) {
      channel.close();
      throw problem;
    }
  }

  /** At least 1. */
  private int millisLeft(String what) throws IOException {
    long left = (deadlineNanos - System.nanoTime()) / 1_000_000;
    if (left <= 0) {
      throw new IOException("connecting took too long: " + what);
    }
    return (int) Math.min(left, Integer.MAX_VALUE);
  }

  /** The workers of this node, from 0 on. */
  public SocketsWorker worker(int index) {
    return workers[index];
  }

  @Override
  public void close() {
    for (SocketsWorker worker : workers) {
      if (worker != null) {
        worker.close();
      }
    }
  }
}
