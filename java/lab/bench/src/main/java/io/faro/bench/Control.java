package io.faro.bench;

import io.faro.QueryId;
import java.io.Closeable;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.util.Arrays;
import java.util.function.Supplier;

/**
 * The others, as node 0 sees them; node 0, as the others see it. Speaks with nodes in C++, too
 * ({@code native/lab/bench/cluster_node.cc}).
 */
final class Control implements Closeable {
  private static final long HELLO = 0x6f6c6c6548L; // node, number of nodes, job words
  private static final long WELCOME = 2; // 1: may take part; 0: its job is another
  private static final long READY = 3; // round
  private static final long START = 4; // round, query: counter, incarnation, issuer
  private static final long REPORT = 5; // words of a NodeReport
  private static final long JOIN_LIMIT_NANOS = 60_000_000_000L;

  private final Options options;
  private final ControlSocket[] peers;

  Control(Options options) {
    this.options = options;
    peers = new ControlSocket[options.nodes().size()];
  }

  /** Node 0 listens on the port after its own. */
  void join() throws IOException {
    InetSocketAddress first = options.address(0);
    InetSocketAddress address = new InetSocketAddress(first.getAddress(), first.getPort() + 1);
    long[] hello = hello();
    if (options.node() != 0) {
      peers[0] = new ControlSocket(ControlSocket.dial(address, JOIN_LIMIT_NANOS));
      peers[0].send(hello);
      if (peers[0].receive(WELCOME, 2)[1] != 1) {
        throw new IOException("node 0 was started with other flags");
      }
      return;
    }
    try (ServerSocketChannel listener = ServerSocketChannel.open().bind(address)) {
      for (int missing = peers.length - 1; missing > 0; missing--) {
        ControlSocket peer = new ControlSocket(listener.accept());
        long[] words = peer.receive(HELLO, 3);
        int node = (int) words[1];
        hello[1] = node;
        if (!Arrays.equals(words, hello) || node <= 0 || node >= peers.length || peers[node] != null) {
          peer.send(WELCOME, 0);
          throw new IOException("node " + node + " was started with other flags, or twice");
        }
        peer.send(WELCOME, 1);
        peers[node] = peer;
      }
    }
  }

  /** All nodes have come here; the round's query is then known on all of them. */
  Round start(int round, Supplier<QueryId> newQuery) throws IOException {
    if (options.node() != 0) {
      peers[0].send(READY, round);
      long[] words = peers[0].receive(START, 5);
      return new Round(round, new QueryId(words[2], words[3], (int) words[4]));
    }
    for (int node = 1; node < peers.length; node++) {
      peers[node].receive(READY, 2);
    }
    QueryId query = newQuery.get();
    for (int node = 1; node < peers.length; node++) {
      peers[node].send(START, round, query.counter(), query.incarnation(), query.issuer());
    }
    return new Round(round, query);
  }

  /** On node 0 the reports of all nodes; on the others null. */
  NodeReport[] collect(NodeReport own) throws IOException {
    if (options.node() != 0) {
      long[] words = own.encode();
      long[] message = new long[words.length + 1];
      message[0] = REPORT;
      System.arraycopy(words, 0, message, 1, words.length);
      peers[0].send(message);
      if (!options.carrier().isFaro()) {
        peers[0].awaitEnd(); // a socket that closes early looks like a node that died
      }
      return null;
    }
    NodeReport[] reports = new NodeReport[peers.length];
    reports[0] = own;
    for (int node = 1; node < peers.length; node++) {
      long[] words = peers[node].receive(REPORT, 2);
      reports[node] = NodeReport.decode(Arrays.copyOfRange(words, 1, words.length));
    }
    return reports;
  }

  private long[] hello() {
    TwoStageJob job = options.job();
    return new long[] {
      HELLO,
      options.node(),
      options.nodes().size(),
      job.processes(),
      job.workersPerProcess(),
      job.rowsPerProcess(),
      Long.BYTES,
      job.partition().ordinal(),
      options.carrier().number(),
      options.rounds() - 1
    };
  }

  @Override
  public void close() throws IOException {
    for (ControlSocket peer : peers) {
      if (peer != null) {
        peer.close();
      }
    }
  }
}
