// PathMap: which queue pair of a link carries what (verbs.queue_pairs).
//
// Everything that a worker posts, the rows of its outgoing rings and the read positions of its incoming ones, goes
// through a path of that worker. So if each worker has a path, workers never compete for a right to post. The two
// ends of a queue pair need not use it for the same lanes: data and its notification share a queue pair, which is
// enough for their order, and everything that arrives names its ring. So the ends only have to agree on the number of
// paths.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ring/layout.h"

namespace faro::transport::verbs {

/// What shares a queue pair.
enum class Sharing {
  link,    // all lanes of the link, as in the paper (§3.2)
  worker,  // all lanes of a worker
  lane,    // the two lanes between two workers
};

/// Threads: constant after construction.
class PathMap {
 public:
  /// For one end, with its outgoing and its incoming rings.
  PathMap(Sharing sharing, const ring::Layout& outgoing, const ring::Layout& incoming)
      : sharing_(sharing), outgoing_(outgoing), incoming_(incoming) {}

  /// How many paths the link has, which is equal at both ends.
  uint32_t count() const noexcept { return count(sharing_, outgoing_, incoming_); }
  static uint32_t count(Sharing sharing, const ring::Layout& outgoing,
                        const ring::Layout& incoming) noexcept {
    if (sharing == Sharing::link) return 1;
    const uint32_t own = outgoing.sender_workers;
    const uint32_t peers = incoming.sender_workers;
    return sharing == Sharing::worker ? std::max(own, peers) : own * peers;
  }

  uint32_t of_outgoing(uint32_t ring) const noexcept {
    return of_workers(outgoing_.sender_of(ring), outgoing_.receiver_of(ring));
  }
  uint32_t of_incoming(uint32_t ring) const noexcept {
    const uint32_t sender = incoming_.sender_of(ring);
    return of_workers(ends_at_node(ring) ? sender : incoming_.receiver_of(ring), sender);
  }

 private:
  /// No worker has the read positions for itself: they go by the path of the sender's number.
  bool ends_at_node(uint32_t ring) const noexcept {
    const uint32_t workers = outgoing_.sender_workers;
    return incoming_.receiver_ends < workers || incoming_.receiver_of(ring) == workers;
  }
  uint32_t of_workers(uint32_t own, uint32_t peers) const noexcept {
    if (sharing_ == Sharing::link) return 0;
    return sharing_ == Sharing::worker ? own : own * incoming_.sender_workers + peers;
  }

  const Sharing sharing_;
  const ring::Layout outgoing_;
  const ring::Layout incoming_;
};

}  // namespace faro::transport::verbs
