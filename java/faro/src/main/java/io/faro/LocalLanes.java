package io.faro;

/**
 * The reference lanes of one shuffle at one worker, to and from the other workers of this node.
 *
 * <p>Threads: the worker's.
 */
final class LocalLanes {
  private static final int NONE = -1;

  private final References references;
  private final ShuffleSpec spec;
  private final int worker;
  private final int[] senders; // their workers
  private final int[] peers; // by receiver: its worker; NONE: everything for it is serialised
  private ReferenceLane[] to; // by receiver; null: not used yet
  private ReferenceLane[] from; // by sender
  private boolean closed;

  /** {@code spec} names all senders and receivers. */
  LocalLanes(References references, ShuffleSpec spec, int worker) {
    this.references = references;
    this.spec = spec;
    this.worker = worker;
    senders = spec.senders();
    peers = spec.receivers();
    for (int receiver = 0; receiver < peers.length; receiver++) {
      if (spec.referenceLimit() == 0 || !references.isLocal(peers[receiver])) {
        peers[receiver] = NONE;
      }
    }
    to = new ReferenceLane[peers.length];
    from = new ReferenceLane[senders.length];
  }

  /** The lane to a receiver; null if objects for it are serialised. */
  ReferenceLane to(int receiver) {
    if (closed || receiver < 0 || receiver >= peers.length || peers[receiver] == NONE) {
      return null;
    }
    if (to[receiver] == null) {
      to[receiver] = references.lane(spec, worker, peers[receiver]);
    }
    return to[receiver];
  }

  /**
   * The lane from a sender of a mark.
   *
   * @throws FaroException {@link Code#PROTOCOL_ERROR} if it is on another node
   */
  ReferenceLane from(int sender) {
    if (from[sender] == null) {
      int peer = senders[sender];
      if (!references.isLocal(peer)) {
        throw new FaroException(
            Code.PROTOCOL_ERROR,
            "worker " + peer + " of another node has sent a row of negative length");
      }
      from[sender] = references.lane(spec, peer, worker);
    }
    return from[sender];
  }

  /** Drops the lanes, and all objects that were handed to this worker. Idempotent. */
  void close() {
    if (closed) {
      return;
    }
    closed = true;
    for (int peer : senders) {
      if (references.isLocal(peer)) {
        references.received(spec, peer, worker);
      }
    }
    to = null;
    from = null;
  }
}
