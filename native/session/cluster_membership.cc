#include "session/cluster_membership.h"

#include <cassert>
#include <utility>

#include "base/return_if_error.h"

namespace faro::session {
Result<std::unique_ptr<Membership>> Membership::open(const base::Settings& settings,
                                                     std::unique_ptr<links::Network> network,
                                                     Observer& observer,
                                                     const Cancellation& cancellation) {
  auto membership = std::make_unique<ClusterMembership>(settings, std::move(network), observer);
  FARO_RETURN_IF_ERROR(membership->open(cancellation));
  return std::unique_ptr<Membership>(std::move(membership));
}

ClusterMembership::ClusterMembership(const base::Settings& settings,
                                     std::unique_ptr<links::Network> network, Observer& observer)
    : settings_(settings),
      network_(std::move(network)),
      topology_(settings_, network_->local_address()),
      peers_(settings_, topology_, network_->reactor().clock()),
      transports_(*network_),
      resources_(settings_, peers_, *network_),
      links_(topology_.size(), static_cast<uint32_t>(settings_.ring_bytes)),
      roster_(settings_, observer, topology_, peers_, *network_, transports_, resources_, links_),
      thread_(roster_, *network_, topology_.own().name, settings.network_cpus) {}

ClusterMembership::~ClusterMembership() { close(); }

Status ClusterMembership::open(const Cancellation& cancellation) {
  FARO_RETURN_IF_ERROR(roster_.open(cancellation));
  return thread_.start();
}

void ClusterMembership::send(uint32_t node, std::span<const std::byte> message) {
  assert(node < topology_.size() && message.size() <= kMessageLimit);
  network_->reactor().defer(
      [this, node, bytes = std::vector<std::byte>(message.begin(), message.end())] {
        roster_.send(node, bytes);
      });
}

Status ClusterMembership::add_node(uint32_t node, const std::string& address) {
  FARO_RETURN_IF_ERROR(peers_.add(node, address));
  network_->reactor().defer([this, node] { roster_.add_node(node); });
  return Status::Ok();
}

Status ClusterMembership::remove_node(uint32_t node) {
  FARO_RETURN_IF_ERROR(peers_.remove(node));
  network_->reactor().defer([this, node] { roster_.remove_node(node); });
  return Status::Ok();
}

void ClusterMembership::let_go(uint32_t node) {
  network_->reactor().defer([this, node] { roster_.let_go(node); });
}

std::set<uint32_t> ClusterMembership::linked() const {
  std::set<uint32_t> linked = links_.linked();
  linked.insert(topology_.self());
  return linked;
}

void ClusterMembership::want_link(uint32_t node) {
  network_->reactor().defer([this, node] { roster_.want_link(node); });
}

bool ClusterMembership::may_rest(uint32_t node) const {
  const links::Link* const link = links_.find(node);
  return !topology_.node(node).wanted_for_good && link != nullptr &&
         link->state().is(links::LinkState::up) && (link->peer().head.features & wire::kRests) != 0;
}

void ClusterMembership::fail_link(uint32_t node, std::shared_ptr<transport::DataLink> link,
                                  const Status& cause) {
  network_->reactor().defer(
      [this, node, link = std::move(link), cause] { roster_.fail_link(node, link.get(), cause); });
}

}  // namespace faro::session
