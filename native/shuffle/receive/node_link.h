// NodeLink: the rings of one link that end at this node (node_ring.h), each with a share for each worker of the node.
#pragma once

#include <cstdint>
#include <memory>

#include "base/fixed_array.h"
#include "session/membership.h"
#include "shuffle/receive/node_ring.h"
#include "transport/transport.h"

namespace faro::shuffle {

class NodeEnd;

/// Whoever has it keeps the link. Threads: as its rings and shares.
class NodeLink : public std::enable_shared_from_this<NodeLink> {
 public:
  /// Throws: std::bad_alloc.
  NodeLink(NodeEnd& end, session::Membership& membership, uint32_t node,
           std::shared_ptr<transport::DataLink> carrier);

  NodeEnd& end() const noexcept { return end_; }
  uint32_t node() const noexcept { return node_; }
  const std::shared_ptr<transport::DataLink>& carrier() const noexcept { return carrier_; }
  uint32_t ring_count() const noexcept { return static_cast<uint32_t>(rings_.size()); }
  NodeRing& ring(uint32_t number) noexcept { return rings_[number]; }
  /// Who sends by a ring, within its node, and which ring of the lane it is.
  uint32_t sender_of(const NodeRing& ring) const noexcept {
    return ring.number() / rings_per_lane_;
  }
  uint32_t ring_of_lane(const NodeRing& ring) const noexcept {
    return ring.number() % rings_per_lane_;
  }
  RingShare& share(uint32_t number, uint32_t local_worker) noexcept {
    return shares_[size_t{number} * worker_count_ + local_worker];
  }

 private:
  NodeEnd& end_;
  const uint32_t node_;
  const std::shared_ptr<transport::DataLink> carrier_;
  const uint32_t worker_count_;
  const uint32_t rings_per_lane_;
  base::FixedArray<NodeRing> rings_;
  base::FixedArray<RingShare> shares_;  // by ring, then worker
};

}  // namespace faro::shuffle
