#include "shuffle/receive/node_link.h"

#include <utility>

#include "ring/layout.h"

namespace faro::shuffle {

NodeLink::NodeLink(NodeEnd& end, session::Membership& membership, uint32_t node,
                   std::shared_ptr<transport::DataLink> carrier)
    : end_(end),
      node_(node),
      carrier_(std::move(carrier)),
      worker_count_(membership.nodes()[membership.node()].worker_count),
      rings_per_lane_(membership.incoming_layout(node).rings_per_lane),
      rings_(membership.incoming_layout(node).rings_of_receiver()),
      shares_(size_t{membership.incoming_layout(node).rings_of_receiver()} * worker_count_) {
  const ring::Layout rings = membership.incoming_layout(node);
  const uint32_t first_sender = membership.nodes()[node].first_worker;
  const uint32_t first_counted = session::first_counted_of_node(membership.settings());
  for (uint32_t r = 0; r < rings.rings_of_receiver(); ++r) {
    const uint32_t sender = r / rings.rings_per_lane;
    const uint32_t k = r % rings.rings_per_lane;
    const uint32_t number = rings.ring(sender, rings.receiver_ends - 1, k);
    NodeRing& ring = rings_.emplace_back(*this, r, carrier_->incoming(number));
    for (uint32_t worker = 0; worker < worker_count_; ++worker) {
      shares_.emplace_back(
          ring, membership.counters().incoming(worker, first_sender + sender, first_counted + k));
    }
  }
}

}  // namespace faro::shuffle
