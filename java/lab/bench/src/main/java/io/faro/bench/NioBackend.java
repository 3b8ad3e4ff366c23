package io.faro.bench;

import io.faro.QueryId;
import java.io.IOException;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.List;

/**
 * The mesh of the sockets middleware: one connection per pair of workers of different processes. The
 * higher process dials, and says between which workers the connection is.
 */
final class NioBackend implements Backend {
  private static final long DIAL_LIMIT_NANOS = 60_000_000_000L;

  private final Options options;
  private final ServerSocketChannel listener;
  private final NioWorker[] workers;
  private long queries;

  NioBackend(Options options) throws IOException {
    this.options = options;
    listener = ServerSocketChannel.open().bind(options.address(options.node()), 1024);
    workers = new NioWorker[options.job().workersPerProcess()];
    for (int i = 0; i < workers.length; i++) {
      workers[i] = new NioWorker(options.job(), first(options.node()) + i, options.carrier() == Carrier.NIO_PAPER);
    }
    for (NioWorker one : workers) {
      for (NioWorker other : workers) {
        if (one != other) {
          one.connectLocal(other);
        }
      }
    }
  }

  @Override
  public void open() throws IOException {
    TwoStageJob job = options.job();
    int before = first(options.node());
    for (NioWorker worker : workers) {
      for (int peer = 0; peer < before; peer++) {
        SocketChannel channel = ControlSocket.dial(options.address(job.processOf(peer)), DIAL_LIMIT_NANOS);
        ByteBuffer hello = ByteBuffer.allocate(8).putInt(worker.number()).putInt(peer).flip();
        channel.write(hello);
        connect(worker, peer, channel);
      }
    }
    int expected = (job.workerCount() - before - workers.length) * workers.length;
    for (int i = 0; i < expected; i++) {
      SocketChannel channel = listener.accept();
      ByteBuffer hello = ByteBuffer.allocate(8);
      while (hello.hasRemaining() && channel.read(hello) >= 0) {}
      hello.flip();
      int peer = hello.getInt();
      connect(workers[hello.getInt() - before], peer, channel);
    }
  }

  private static void connect(NioWorker worker, int peer, SocketChannel channel) throws IOException {
    channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
    channel.configureBlocking(false);
    worker.connect(peer, channel);
  }

  private int first(int node) {
    return node * options.job().workersPerProcess();
  }

  @Override
  public RoundWorker worker(int localIndex) {
    return workers[localIndex];
  }

  @Override
  public QueryId newQuery() {
    return new QueryId(++queries, 0, 0);
  }

  @Override
  public List<String> transports() {
    return List.of();
  }

  @Override
  public void close() throws IOException {
    listener.close();
    for (NioWorker worker : workers) {
      worker.close();
    }
  }
}
