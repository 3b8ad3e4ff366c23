package io.faro;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;

/** A cluster whose nodes are all in this JVM. */
final class Cluster implements AutoCloseable {
  private static final List<Socket> HELD = Collections.synchronizedList(new ArrayList<>());

  private final List<Session> sessions = new ArrayList<>();

  Cluster(String transport, int nodes, int workersPerNode) {
    this(nodes, workersPerNode, config -> config.set(Setting.TRANSPORT, transport));
  }

  Cluster(int nodes, int workersPerNode, Consumer<SessionConfig.Builder> settings) {
    List<String> addresses = heldAddresses(nodes);
    List<CompletableFuture<Session>> opening = new ArrayList<>();
    for (int node = 0; node < nodes; node++) {
      SessionConfig.Builder config =
          config(node, addresses).workers(workersPerNode);
      settings.accept(config);
      opening.add(Session.openAsync(config.build()).toCompletableFuture());
    }
    opening.forEach(one -> sessions.add(one.join()));
  }

  /**
   * The configuration of one node. The cluster's id tells it from clusters of tests that run beside
   * this one.
   */
  static SessionConfig.Builder config(int node, List<String> addresses) {
    return SessionConfig.builder()
        .cluster(node, addresses)
        .set(Setting.CLUSTER_ID, String.join(" ", addresses));
  }

  /**
   * Addresses that the system gives to nobody else as long as this JVM runs: sockets are bound to them, and do not
   * listen. A node that listens there, with SO_REUSEADDR as Faro does, may.
   */
  static List<String> heldAddresses(int count) {
    List<String> addresses = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      Socket socket = new Socket();
      HELD.add(socket);
      try {
        socket.setReuseAddress(true);
        socket.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
      } catch (IOException problem) {
        throw new IllegalStateException(problem);
      }
      addresses.add("127.0.0.1:" + socket.getLocalPort());
    }
    return addresses;
  }

  Session session(int node) {
    return sessions.get(node);
  }

  /** By number over the whole cluster. */
  Worker worker(int number) {
    int perNode = sessions.get(0).workers().size();
    return sessions.get(number / perNode).workers().get(number % perNode);
  }

  int workerCount() {
    return sessions.get(0).workerCount();
  }

  QueryId beginQuery() {
    return session(0).beginQuery();
  }

  /** From all workers to all, as stage 1 of a new query. */
  ShuffleSpec spec(int rowBytes) {
    return new ShuffleSpec(beginQuery(), 1, rowBytes);
  }

  /** The spec of a shuffle from one worker to one, in a new query. */
  ShuffleSpec spec(int rowBytes, int sender, int receiver) {
    return new ShuffleSpec(beginQuery(), 1, rowBytes, new int[] {sender}, new int[] {receiver});
  }

  /** Opens a shuffle at worker 0. */
  Shuffle openShuffle(int rowBytes) {
    return worker(0).openShuffle(spec(rowBytes));
  }

  interface Task {
    void run(Worker worker) throws Exception;
  }

  /** Runs the task on a thread per worker; throws what the first one that fails throws. */
  void onEachWorker(Task task) throws Exception {
    List<Thread> threads = new ArrayList<>();
    List<Exception> problems = new ArrayList<>();
    for (int i = 0; i < workerCount(); i++) {
      Worker worker = worker(i);
      Thread thread =
          new Thread(
              () -> {
                try {
                  task.run(worker);
                  worker.releaseOwnership();
                } catch (Exception | AssertionError problem) {
                  synchronized (problems) {
                    problems.add(problem instanceof Exception ? (Exception) problem : new Exception(problem));
                  }
                  sessions.forEach(Session::close); // the others may be waiting for this one
                }
              },
              "worker " + i);
      thread.start();
      threads.add(thread);
    }
    for (Thread thread : threads) {
      thread.join();
    }
    if (!problems.isEmpty()) {
      throw problems.get(0);
    }
  }

  interface ShuffleTask {
    void run(Worker worker, Shuffle shuffle) throws Exception;
  }

  /** Runs the task on a thread per worker, with its shuffle of this spec, and ends the query. */
  void shuffle(ShuffleSpec spec, ShuffleTask task) throws Exception {
    onEachWorker(
        worker -> {
          try (Shuffle shuffle = worker.openShuffle(spec)) {
            task.run(worker, shuffle);
          }
          worker.endQuery(spec.query());
        });
  }

  /** Runs a shuffle of all workers to all. */
  void shuffle(int rowBytes, ShuffleTask task) throws Exception {
    shuffle(spec(rowBytes), task);
  }

  @Override
  public void close() {
    List<CompletableFuture<Void>> closing = new ArrayList<>();
    for (Session session : sessions) {
      closing.add(session.closeAsync().toCompletableFuture());
    }
    closing.forEach(CompletableFuture::join);
  }
}
