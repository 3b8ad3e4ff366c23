// Cluster: a whole cluster in one thread, over the real session layer, or over the public API; and what
// can happen to its nodes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/settings.h"
#include "faro/config.h"
#include "faro/session.h"
#include "faro/status.h"
#include "lab/simulation/links/sim_internet.h"
#include "lab/simulation/links/sim_network.h"
#include "lab/simulation/transport/sim_waiter.h"
#include "lab/simulation/transport/sim_world.h"
#include "session/membership.h"
#include "shuffle/overflow/spill_file.h"

namespace faro::simulation {

/// What a cluster looks like; the rest are the settings' defaults.
struct ClusterShape {
  std::vector<uint32_t> workers_per_node = {1, 1};
  std::function<void(Config& config, uint32_t node)> configure = {};  // ring.bytes, …
  /// A node's overflow file; empty: one on disk.
  std::function<std::unique_ptr<shuffle::SpillFile>(uint32_t node)> make_spill_file = {};
  /// Slow starters: how long a node waits before it opens, and opens again; nodes beyond the end do
  /// not wait.
  std::vector<base::Nanoseconds> start_after = {};
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
  void on_peer_lost(uint32_t node, const session::PeerView&, const Status& cause) override {
    lost.push_back(node);
    causes.push_back(cause);
  }
  void on_peer_left(uint32_t node, const session::PeerView&) override { left.push_back(node); }
  void on_let_go(uint32_t, const session::PeerView&) override {}
  void on_peer_joined(uint32_t node, const session::PeerView&) override { joined.push_back(node); }
  void on_peer_returned(uint32_t node, session::Peers::Return) override {
    returned.push_back(node);
  }
  bool is_drained(uint32_t) const override { return true; }
  void on_drained(uint32_t) override {}
  void on_node_removed(uint32_t, const session::PeerView&) override {}
  void on_number_free(uint32_t) override {}
  void on_links_changed() override {}
  void on_tick(base::Nanoseconds) override { ++ticks; }

  std::vector<Message> messages;
  std::vector<uint32_t> lost;
  std::vector<Status> causes;
  std::vector<uint32_t> left;
  std::vector<uint32_t> joined;
  std::vector<uint32_t> returned;
  uint64_t ticks = 0;
};

/// How the network of a node with these settings has it take turns; nothing: it does not.
std::optional<sim::SimNetwork::Schedule> schedule_of(const base::Settings& settings);

/// Threads: one. Two clusters of one seed and shape behave in exactly the same way.
class Cluster {
 public:
  Cluster(uint64_t seed, ClusterShape shape);
  /// Closes what is open; in a failed world gives up everything as it is.
  ~Cluster();

  /// Opens every node, each in a fiber of its own, in an order that the seed chooses. `observer`
  /// gives each node its observer; empty: observer(node). Errors: the first of any node (settings
  /// included), or the world's.
  Status open(const std::function<session::Observer&(uint32_t node)>& observer = {});
  /// Opens only these; the others never start.
  Status open_only(const std::vector<uint32_t>& nodes,
                   const std::function<session::Observer&(uint32_t node)>& observer = {});

  /// Opens all nodes with whole sessions instead of bare memberships: faro::Session on every node,
  /// whose workers wait by the world's waiter.
  Status open_sessions();
  /// One node's session; from a fiber. Its memory must be free: a new cluster, or after end_node.
  /// Errors: Session::open's.
  Status open_session(uint32_t node);
  /// What opening this node answered last.
  const Status& opened(uint32_t node) const { return nodes_[node]->opened; }

  /// A worker's program: a fiber of its node. Runs during run().
  void spawn(uint32_t node, uint32_t local_worker, std::function<void()> program);
  /// Runs until every program has ended. Errors: the world's; show world().report().
  Status run() { return world_.run(); }

  /// Closes one node, if it is open; from a fiber. Not Session::close directly: the node's network
  /// thread ends here. Errors: Session::close's.
  Status close_node(uint32_t node);
  /// Closes one node, as close_node does, and destroys what it had. No program of it may be
  /// running. The node can be opened again.
  Status end_node(uint32_t node);
  /// Closes every node that is open, each in a fiber. Errors: the world's, else the first of any
  /// node.
  Status close();

  /// Lets simulated time pass, with progress; from a fiber.
  void sleep(base::Nanoseconds lasting) { world_.sleep(lasting); }

  // --- what can happen. From an event or a fiber; other faults: faults().

  /// The process of a node dies, as the others see it: SimNetwork::die. Its own programs go on until
  /// they notice that they are alone; then end_node. Also while it opens, which then fails in time.
  void kill(uint32_t node);
  /// The process of a node is stopped for so long.
  void stall(uint32_t node, base::Nanoseconds lasting) {
    world_.stall(node, world_.now() + lasting);
  }
  sim::SimFaults& faults() { return internet_.fabric().faults(); }
  /// The turns of all nodes.
  const sim::TurnWatch& turn_watch() { return internet_.fabric().turn_watch(); }
  /// How often workers have looked at the network.
  uint64_t network_looks() { return internet_.fabric().looks(); }

  sim::World& world() { return world_; }
  sim::SimWaiter& waiter() { return waiter_; }
  uint32_t node_count() const { return static_cast<uint32_t>(nodes_.size()); }
  const base::Settings& settings(uint32_t node) const { return nodes_[node]->settings; }
  /// After open.
  session::Membership& membership(uint32_t node) { return *nodes_[node]->membership; }
  /// After open_sessions.
  Session& session(uint32_t node) { return *nodes_[node]->session; }
  bool has_session(uint32_t node) const { return nodes_[node]->session != nullptr; }
  RememberingObserver& observer(uint32_t node) { return nodes_[node]->observer; }

 private:
  struct Node {
    base::Settings settings;
    RememberingObserver observer;
    std::unique_ptr<session::Membership> membership;
    std::unique_ptr<Session> session;
    sim::SimNetwork* network =
        nullptr;  // owned by the membership, null while there is none to be closed
    sim::SimNetwork* opening = nullptr;  // the same while it opens
    sim::World::AgentId agent = 0;
    Status opened;
  };

  void open_node(uint32_t number, session::Observer& observer);
  Status open_each(const std::vector<uint32_t>& nodes,
                   const std::function<void(uint32_t)>& open_one);
  void start_agent(uint32_t number, sim::SimNetwork* network, session::Membership* membership);

  sim::World world_;
  sim::SimInternet internet_;
  sim::SimWaiter waiter_;
  const std::function<std::unique_ptr<shuffle::SpillFile>(uint32_t)> make_spill_file_;
  const std::vector<base::Nanoseconds> start_after_;
  Status configured_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace faro::simulation
