package io.faro.peers;

import io.faro.bench.Options;

/**
 * Where the frames for a worker go. Terms are as short as frames of 16 KiB allow, so that they stay
 * in the cache like Faro's rings, and a frame travels in one piece.
 */
interface AeronChannels {
  /** Bytes of a term: at least eight messages. */
  int TERM = 256 * 1024;

  /** The channel of what is sent to this worker. */
  String to(int worker);

  /** Shared memory. */
  static AeronChannels ipc() {
    return worker -> "aeron:ipc?mtu=32k|term-length=" + TERM;
  }

  /** UDP over loopback, a datagram for each frame; a port for each worker, the one of its node. */
  static AeronChannels udp(Options options) {
    return worker -> {
      int node = options.job().processOf(worker);
      return "aeron:udp?mtu=32k|term-length=" + TERM + "|endpoint=127.0.0.1:" + options.address(node).getPort();
    };
  }
}
