package io.faro.flink;

import java.io.IOException;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.flink.runtime.io.network.ConnectionID;
import org.apache.flink.runtime.io.network.netty.exception.RemoteTransportException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The links to producing TaskManagers: up to a certain number to each, which all input channels
 * share.
 *
 * <p>Threads: any.
 */
final class Clients {
  private static final Logger LOG = LoggerFactory.getLogger(Clients.class);

  /**
   * A peer that listens answers sooner. After this time a thread that waits looks what else may be
   * there.
   */
  private static final long ANSWER_MS = 400;

  /** Makes links. Never blocks: the future completes when the link is open, or can not be. */
  @FunctionalInterface
  interface Dialler {
    CompletableFuture<ConsumerLink> dial(Peer peer);
  }

  private final Dialler dialler;
  private final int linksPerPeer;
  private final int retries;
  private final boolean reused;
  private final Map<ConnectionID, CompletableFuture<FaroPartitionRequestClient>> clients =
      new ConcurrentHashMap<>();

  /** {@code reused}: links stay when nobody uses them. */
  Clients(Dialler dialler, int linksPerPeer, int retries, boolean reused) {
    this.dialler = dialler;
    this.linksPerPeer = linksPerPeer;
    this.retries = retries;
    this.reused = reused;
  }

  int count() {
    return clients.size();
  }

  /**
   * A client that its caller has to close. Blocks until the link is open; an interrupt ends that.
   */
  FaroPartitionRequestClient get(ConnectionID connection) throws IOException, InterruptedException {
    ConnectionID key = shared(connection);
    while (true) {
      CompletableFuture<FaroPartitionRequestClient> mine = new CompletableFuture<>();
      CompletableFuture<FaroPartitionRequestClient> found = clients.putIfAbsent(key, mine);
      if (found == null) {
        found = mine;
        connect(key, mine, 0);
      }
      FaroPartitionRequestClient client = await(found, Peer.of(key));
      if (client.retain()) {
        return client;
      }
      clients.remove(key, found);
    }
  }

  /** An input channel was released that may have waited in {@link #get}. */
  void closeUnused(ConnectionID connection) {
    CompletableFuture<FaroPartitionRequestClient> found = clients.get(shared(connection));
    if (found != null && !found.isDone()) {
      found.thenAccept(FaroPartitionRequestClient::closeIfUnused);
    }
  }

  // Flink numbers connections at random; so the numbers are mapped to few.
  private ConnectionID shared(ConnectionID connection) {
    return new ConnectionID(
        connection.getResourceID(),
        connection.getAddress(),
        connection.getConnectionIndex() % linksPerPeer);
  }

  private void connect(
      ConnectionID key, CompletableFuture<FaroPartitionRequestClient> result, int tried) {
    Peer peer = Peer.of(key);
    dialler
        .dial(peer)
        .whenComplete(
            (link, failure) -> {
              if (failure == null) {
                result.complete(
                    new FaroPartitionRequestClient(
                        link, peer, reused, () -> clients.remove(key, result)));
              } else if (tried < retries && !result.isDone()) {
                LOG.warn("Failed {} times to connect to {}. Retrying.", tried + 1, peer, failure);
                connect(key, result, tried + 1);
              } else {
                LOG.warn("Failed to connect to {}. Giving up.", peer, failure);
                fail(key, result, failure);
              }
            });
  }

  private void fail(
      ConnectionID key, CompletableFuture<FaroPartitionRequestClient> result, Throwable failure) {
    clients.remove(key, result);
    result.completeExceptionally(failure);
  }

  private FaroPartitionRequestClient await(
      CompletableFuture<FaroPartitionRequestClient> found, Peer peer)
      throws IOException, InterruptedException {
    try {
      try {
        return found.get(ANSWER_MS, TimeUnit.MILLISECONDS);
      } catch (TimeoutException slow) {
        String obstacle = PeerProbe.obstacle(peer.address());
        if (obstacle != null && !found.isDone()) {
          // The link may still come, if the peer starts just now; it then serves the next one that
          // asks.
          throw new RemoteTransportException(
              "Connecting to " + peer + " has failed. " + obstacle, peer.address());
        }
        return found.get();
      }
    } catch (ExecutionException failed) {
      Throwable cause = failed.getCause();
      if (cause instanceof RemoteTransportException remote) {
        // Each thread that waits gets an exception of its own.
        throw new RemoteTransportException(remote.getMessage(), peer.address(), remote);
      }
      throw cause instanceof IOException io
          ? io
          : new IOException("Could not create a client of Faro.", cause);
    }
  }
}
