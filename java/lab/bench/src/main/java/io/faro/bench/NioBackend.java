package io.faro.bench;

import io.faro.QueryId;
import io.faro.sockets.SocketsMesh;
import io.faro.sockets.SocketsSettings;
import java.io.IOException;
import java.time.Duration;
import java.util.List;

/** Java NIO sockets: the baseline. */
final class NioBackend implements Backend {
  private static final Duration CONNECT_LIMIT = Duration.ofSeconds(60);
  private static final int YIELDS = 4;
  private static final int CHECK_MS = 60_000; // that a node has died is known by its socket

  private final Options options;
  private SocketsMesh mesh;
  private long queries;

  NioBackend(Options options) {
    this.options = options;
  }

  @Override
  public void open() throws IOException {
    mesh =
        SocketsMesh.open(
            new SocketsSettings(
                options.nodes(),
                options.node(),
                options.job().workersPerProcess(),
                Long.BYTES,
                options.carrier() == Carrier.NIO_PAPER,
                CONNECT_LIMIT,
                YIELDS,
                CHECK_MS));
  }

  @Override
  public RoundWorker worker(int localIndex) {
    return new NioWorker(options.job(), mesh.worker(localIndex));
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
  public void close() {
    if (mesh != null) {
      mesh.close();
    }
  }
}
