// ClusterMembership: the Membership of a cluster whose nodes are listed in the settings. It composes the parts of
// a session and owns the network thread, whose work is done by Roster.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "links/link_table.h"
#include "links/network.h"
#include "links/network_thread.h"
#include "links/transports.h"
#include "session/membership.h"
#include "session/peers.h"
#include "session/resources.h"
#include "session/roster.h"
#include "session/topology.h"

namespace faro::session {

/// Threads: as membership.h says.
class ClusterMembership final : public Membership {
 public:
  ClusterMembership(const base::Settings& settings, std::unique_ptr<links::Network> network,
                    Observer& observer);
  ~ClusterMembership() override;

  /// What Membership::open does, once.
  Status open(const Cancellation& cancellation);

  const base::Settings& settings() const override { return settings_; }
  const base::Clock& clock() const override { return network_->reactor().clock(); }
  uint32_t node() const override { return topology_.self(); }
  const std::vector<Node>& nodes() const override { return topology_.nodes(); }
  uint32_t worker_count() const override { return topology_.worker_count(); }
  Peers& peers() override { return peers_; }
  Status add_node(uint32_t node, const std::string& address) override;
  Status remove_node(uint32_t node) override;
  void let_go(uint32_t node) override;
  void want_link(uint32_t node) override;
  bool may_rest(uint32_t node) const override;
  std::shared_ptr<transport::DataLink> link(uint32_t node) override {
    return node == topology_.self() ? resources_.local_link() : links_.data(node);
  }
  std::set<uint32_t> linked() const override;
  std::optional<uint32_t> next_counting(uint32_t from) const noexcept override {
    return links_.next_counting(from);
  }
  uint64_t link_changes() const noexcept override { return links_.changes(); }
  uint32_t first_ready(uint32_t node, uint32_t local_worker) const override {
    return resources_.first_ready(node, local_worker);
  }
  ring::ReadySet& ready_set(uint32_t local_worker) override {
    return resources_.ready_set(local_worker);
  }
  ring::ReadySet* node_ready_set() override {
    return resources_.node_end() == nullptr ? nullptr : resources_.node_end()->ready;
  }
  ring::DoorbellLine& doorbell(uint32_t local_worker) override {
    return resources_.doorbell(local_worker);
  }
  ring::Layout outgoing_layout(uint32_t node) const override { return topology_.outgoing(node); }
  ring::Layout incoming_layout(uint32_t node) const override { return topology_.incoming(node); }
  void send(uint32_t node, std::span<const std::byte> message) override;
  transport::IdleWork& idle_work() noexcept override { return transports_; }
  void fail_link(uint32_t node, std::shared_ptr<transport::DataLink> link,
                 const Status& cause) override;
  bool connected(uint32_t node) const override {
    return node == topology_.self() || links_.connected(node);
  }
  uint32_t retired_link_count() const override { return links_.retired_count(); }
  counters::CounterFile& counters() override { return resources_.counters(); }
  void close() override { thread_.close(); }
  bool do_work() override { return thread_.do_work(); }

 private:
  // Destroyed last to first: links use all that stands before them.
  const base::Settings settings_;
  const std::unique_ptr<links::Network> network_;
  Topology topology_;
  Peers peers_;
  links::Transports transports_;
  Resources resources_;
  links::LinkTable links_;
  Roster roster_;
  links::NetworkThread thread_;
};

}  // namespace faro::session
