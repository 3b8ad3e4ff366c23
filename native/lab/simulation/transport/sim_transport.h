// The simulated transport: rings in private memory, copied by events of a World (sim_port.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "lab/simulation/transport/sim_faults.h"
#include "lab/simulation/transport/sim_port.h"
#include "lab/simulation/transport/sim_turns.h"
#include "lab/simulation/transport/sim_world.h"
#include "transport/transport.h"

namespace faro::sim {

/// Where the two ends of a link find each other: what the wires are elsewhere. One per cluster.
class SimFabric {
 public:
  explicit SimFabric(World& world) : world_(world) {}

  World& world() { return world_; }
  SimFaults& faults() { return faults_; }
  TurnWatch& turn_watch() { return turn_watch_; }
  uint64_t add(const std::shared_ptr<SimPort>& port) {
    ports_[++last_key_] = port;
    return last_key_;
  }
  /// Null if there is none of that key, or no longer.
  std::shared_ptr<SimPort> find(uint64_t key) const {
    const auto found = ports_.find(key);
    return found == ports_.end() ? nullptr : found->second.lock();
  }
  bool has_given_out(uint64_t key) const { return key != 0 && key <= last_key_; }
  void remove(uint64_t key) { ports_.erase(key); }
  /// How often workers have looked at the network, all nodes together.
  uint64_t looks() const { return looks_; }
  void count_look() { ++looks_; }

 private:
  World& world_;
  uint64_t looks_ = 0;
  SimFaults faults_;
  TurnWatch turn_watch_;
  std::map<uint64_t, std::weak_ptr<SimPort>> ports_;
  uint64_t last_key_ = 0;
};

/// Threads: its world's. Blocks: never. Owns: nothing; the fabric outlives it, its set-ups and its
/// links.
class SimTransport final : public transport::Transport {
 public:
  /// `node`: whose it is; lives and faults are those of nodes. turns: the node's; null: rows go without.
  SimTransport(SimFabric& fabric, uint32_t node, std::shared_ptr<SimTurns> turns = nullptr)
      : fabric_(fabric), node_(node), turns_(std::move(turns)) {}

  const transport::Capabilities& capabilities() const override;
  Status available() const override { return Status::Ok(); }
  uint64_t memory_bytes(const ring::Layout& outgoing, const ring::Layout& incoming) const override {
    return outgoing.region_bytes() + incoming.region_bytes();
  }
  /// Both ends send one message; each is ready when it has the other's.
  std::unique_ptr<transport::LinkSetup> begin(transport::LinkContext& context) override;
  std::unique_ptr<transport::LinkMending> mend(transport::LinkContext& context,
                                               transport::DataLink& link) override;
  /// Only what is told of turns comes by it. True: whoever looks does so again each time, not after a while alone.
  bool poll() noexcept override {
    fabric_.count_look();
    if (turns_ != nullptr) turns_->read();
    return true;
  }

 private:
  SimFabric& fabric_;
  const uint32_t node_;
  const std::shared_ptr<SimTurns> turns_;
};

/// The capabilities of every simulated link.
const transport::Capabilities& sim_capabilities();

/// The data link over a port that is attached to its peer's.
std::unique_ptr<transport::DataLink> make_sim_link(std::shared_ptr<SimPort> port);
/// The port of such a link.
SimPort& port_of(transport::DataLink& link);

}  // namespace faro::sim
