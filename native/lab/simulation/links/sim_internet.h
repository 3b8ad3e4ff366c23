// SimInternet: who listens where in a simulated world, and the wires of its data links.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "faro/status.h"
#include "lab/simulation/transport/sim_transport.h"
#include "lab/simulation/transport/sim_world.h"

namespace faro::sim {

class SimNetwork;

/// Threads: its world's. Outlives its networks.
class SimInternet {
 public:
  explicit SimInternet(World& world) : world_(world), fabric_(world) {}

  World& world() { return world_; }
  SimFabric& fabric() { return fabric_; }

  /// `address` with its port chosen, if that is 0. Errors: address_in_use, config_invalid (no
  /// port).
  Result<std::string> listen(const std::string& address, SimNetwork* network);
  /// Nothing happens if somebody else listens there by now.
  void stop_listening(const std::string& address, const SimNetwork* network) {
    const auto found = listening_.find(address);
    if (found != listening_.end() && found->second == network) listening_.erase(found);
  }
  /// Null if nobody listens there.
  SimNetwork* find(const std::string& address) const {
    const auto found = listening_.find(address);
    return found == listening_.end() ? nullptr : found->second;
  }

 private:
  World& world_;
  SimFabric fabric_;
  std::map<std::string, SimNetwork*> listening_;
  uint32_t last_port_ = 49151;  // those above are given out, as by a system
};

}  // namespace faro::sim
