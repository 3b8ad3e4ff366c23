// SimCluster: a whole cluster in one thread, over the real session layer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/settings.h"
#include "faro/config.h"
#include "faro/status.h"
#include "session/membership.h"
#include "session/sim/sim_internet.h"
#include "session/sim/sim_network.h"
#include "transport/sim/sim_waiter.h"
#include "transport/sim/sim_world.h"

namespace faro::test {

/// What a cluster looks like; the rest are the settings' defaults.
struct ClusterShape {
  std::vector<uint32_t> workers_per_node = {1, 1};
  std::function<void(Config& config, uint32_t node)> configure = {};  // ring.bytes, …
  sim::Knobs knobs = {};
};

/// Remembers what a membership told.
struct RememberingObserver : session::Observer {
  struct Message {
    uint32_t from;
    std::vector<std::byte> bytes;
  };
  void on_message(uint32_t from, std::span<const std::byte> bytes) override {
    messages.push_back({from, {bytes.begin(), bytes.end()}});
  }
  void on_peer_lost(uint32_t node, const Status& cause) override {
    lost.push_back(node);
    causes.push_back(cause);
  }
  void on_peer_left(uint32_t node) override { left.push_back(node); }
  void on_tick(base::Nanoseconds) override { ++ticks; }

  std::vector<Message> messages;
  std::vector<uint32_t> lost;
  std::vector<Status> causes;
  std::vector<uint32_t> left;
  uint64_t ticks = 0;
};

/// Threads: one. Two clusters of one seed and shape behave in exactly the same way.
class SimCluster {
 public:
  SimCluster(uint64_t seed, ClusterShape shape);
  /// Closes what is open.
  ~SimCluster();

  /// Opens every node, each in a fiber of its own, in an order that the seed chooses. `observer`
  /// gives each node its observer; empty: observer(node). Errors: the first of any node, or the
  /// world's.
  Status open(const std::function<session::Observer&(uint32_t node)>& observer = {});
  /// Opens only these; the others never start.
  Status open_only(const std::vector<uint32_t>& nodes,
                   const std::function<session::Observer&(uint32_t node)>& observer = {});

  /// A worker's program: a fiber. Runs during run().
  void spawn(uint32_t node, uint32_t local_worker, std::function<void()> program);
  /// Runs until every program has ended. Errors: the world's; show world().report().
  Status run() { return world_.run(); }

  /// Closes every node that is open, each in a fiber. Errors: the world's.
  Status close();

  sim::World& world() { return world_; }
  sim::SimWaiter& waiter() { return waiter_; }
  uint32_t node_count() const { return static_cast<uint32_t>(nodes_.size()); }
  const base::Settings& settings(uint32_t node) const { return nodes_[node]->settings; }
  /// A network for a node that somebody else opens; its set_agent tells who does its work.
  Result<std::unique_ptr<sim::SimNetwork>> make_network(uint32_t node) {
    return sim::SimNetwork::create(internet_, nodes_[node]->settings, "host");
  }
  session::Membership& membership(uint32_t node) { return *nodes_[node]->membership; }
  RememberingObserver& observer(uint32_t node) { return nodes_[node]->observer; }

 private:
  struct Node {
    base::Settings settings;
    RememberingObserver observer;
    std::unique_ptr<session::Membership> membership;
    sim::SimNetwork* network = nullptr;  // owned by the membership
    sim::World::AgentId agent = 0;
    Status opened;
  };

  void open_node(uint32_t number, session::Observer& observer);

  sim::World world_;
  sim::SimInternet internet_;
  sim::SimWaiter waiter_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace faro::test
