// Nodes: the sessions of a program, over a World.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "faro/session.h"
#include "lab/simulation/sim_spill_file.h"
#include "sim/programs/world.h"
#include "sim/send_path/plan.h"
#include "transport/transport.h"

namespace faro::send_path {

/// Threads: one. Every session is open from the beginning, and nodes are linked when the world is
/// pumped.
class Nodes {
 public:
  Nodes(const Plan& plan, World& world);
  ~Nodes();
  Nodes(const Nodes&) = delete;
  Nodes& operator=(const Nodes&) = delete;

  /// Errors: those of opening.
  const Status& opened() const noexcept { return opened_; }
  Session& session(uint32_t node) { return *nodes_[node].session; }
  Worker& worker(uint32_t number) {
    return session(node_of(number)).worker(number % workers_per_node_);
  }
  uint32_t node_of(uint32_t worker) const { return worker / workers_per_node_; }
  /// The link of a node to itself.
  transport::DataLink& local_link(uint32_t node);
  bool is_there(uint32_t node) const { return nodes_[node].is_there; }

  /// A session is closed in order.
  Status close(uint32_t node);
  /// A process dies, as the others see it. Its own calls go on, alone.
  void kill(uint32_t node);
  /// The control connection between two nodes breaks.
  void cut_control(uint32_t a, uint32_t b);

 private:
  struct Node {
    simulation::SimDisk disk;
    programs::ManualNetwork* network = nullptr;
    std::unique_ptr<Session> session;
    bool is_there = false;
  };
  Status open(const Plan& plan, uint32_t number);

  World& world_;
  const uint32_t workers_per_node_;
  std::vector<Node> nodes_;
  Status opened_;
};

}  // namespace faro::send_path
