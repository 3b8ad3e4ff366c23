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
  private final int[] peers; // by receiver: its worker; NONE: everything for it is serialised
  private ReferenceLane[] to; // by receiver; null: not used yet
  private ReferenceLane[] from; // by the number of the sending worker
  private boolean closed;

  /** {@code spec} names all senders and receivers; {@code workerCount} is that of the session. */
  LocalLanes(References references, ShuffleSpec spec, int worker, int workerCount) {
    this.references = references;
    this.spec = spec;
    this.worker = worker;
    peers = spec.receivers();
    for (int receiver = 0; receiver < peers.length; receiver++) {
      if (spec.referenceLimit() == 0 || !references.isLocal(peers[receiver])) {
        peers[receiver] = NONE;
      }
    }
    to = new ReferenceLane[peers.length];
    from = new ReferenceLane[workerCount];
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
   * The lane from a worker that has sent a mark.
   *
   * @throws FaroException {@link Code#PROTOCOL_ERROR} if it is on another node
   */
  ReferenceLane from(int sender) {
    if (from[sender] == null) {
      if (!references.isLocal(sender)) {
        throw new FaroException(
            Code.PROTOCOL_ERROR,
            "worker " + sender + " of another node has sent a row of negative length");
      }
      from[sender] = references.lane(spec, sender, worker);
    }
    return from[sender];
  }

  /** Drops the lanes, and all objects that were handed to this worker. Idempotent. */
  void close() {
    if (closed) {
      return;
    }
    closed = true;
    for (int sender = 0; sender < from.length; sender++) {
      if (references.isLocal(sender)) {
        references.received(spec, sender, worker);
      }
    }
    to = null;
    from = null;
  }
}
