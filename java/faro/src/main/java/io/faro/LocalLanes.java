package io.faro;

/**
 * The reference lanes of one shuffle at one worker, from and to the workers of the same node.
 *
 * <p>Threads: the worker's.
 */
final class LocalLanes {
  private final References references;
  private final ShuffleSpec spec;
  private final int worker;
  private ReferenceLane[] to; // by receiver; null: not used yet
  private ReferenceLane[] from; // by the number of the sending worker
  private boolean closed;

  LocalLanes(References references, ShuffleSpec spec, int worker, int receiverCount, int workerCount) {
    this.references = references;
    this.spec = spec;
    this.worker = worker;
    to = new ReferenceLane[receiverCount];
    from = new ReferenceLane[workerCount];
  }

  /** The lane to a receiver; null if objects are not handed to it, but serialised. */
  ReferenceLane to(int receiver) {
    if (closed || spec.referenceLimit() == 0 || receiver < 0 || receiver >= to.length) {
      return null;
    }
    if (to[receiver] == null) {
      int peer = spec.receivers().length == 0 ? receiver : spec.receivers()[receiver];
      if (references.isLocal(peer)) {
        to[receiver] = references.lane(spec, worker, peer);
      }
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
            Code.PROTOCOL_ERROR, "worker " + sender + " of another node has sent a row of negative length");
      }
      from[sender] = references.lane(spec, sender, worker);
    }
    return from[sender];
  }

  /** Lets all objects go that were handed to this worker, and the lanes. Idempotent. */
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
