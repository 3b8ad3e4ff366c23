package io.faro;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * All reference lanes of one session. Whichever end of a lane needs it first makes it. A lane is
 * removed when its receiver closes its shuffle, and with its query or session at the latest.
 *
 * <p>Threads: any.
 */
final class References {
  private record Place(int stage, int sender, int receiver) {}

  private final int firstWorker;
  private final int workerCount; // of this node
  private final Map<QueryId, Map<Place, ReferenceLane>> queries = new ConcurrentHashMap<>();

  References(int firstWorker, int workerCount) {
    this.firstWorker = firstWorker;
    this.workerCount = workerCount;
  }

  /** Whether a worker belongs to this node. */
  boolean isLocal(int worker) {
    return worker >= firstWorker && worker - firstWorker < workerCount;
  }

  ReferenceLane lane(ShuffleSpec spec, int sender, int receiver) {
    return queries
        .computeIfAbsent(spec.query(), query -> new ConcurrentHashMap<>())
        .computeIfAbsent(
            new Place(spec.stage(), sender, receiver),
            place -> new ReferenceLane(spec.referenceLimit()));
  }

  /** The receiver no longer reads this lane; called on its thread. */
  void received(ShuffleSpec spec, int sender, int receiver) {
    Map<Place, ReferenceLane> lanes = queries.get(spec.query());
    if (lanes != null) {
      ReferenceLane lane = lanes.remove(new Place(spec.stage(), sender, receiver));
      if (lane != null) {
        lane.clear();
      }
    }
  }

  /** The query has ended. */
  void forget(QueryId query) {
    queries.remove(query);
  }

  /** The session was closed. */
  void clear() {
    queries.clear();
  }
}
