// Peers: the endpoints of a simulated world, in one thread; and what can happen to them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/settings.h"
#include "endpoint/endpoint_core.h"
#include "lab/simulation/channels/channel_plan.h"
#include "lab/simulation/links/sim_internet.h"
#include "lab/simulation/links/sim_network.h"
#include "lab/simulation/transport/sim_world.h"

namespace faro::simulation {

/// Threads: one.
class Peers {
 public:
  explicit Peers(const ChannelPlan& plan);
  /// Closes what is open; in a failed world gives up everything as it is.
  ~Peers();

  using Accept = std::function<ChannelAcceptance(const ChannelRequest&)>;
  /// Opens an endpoint at a place that has none. Errors: those of Endpoint::open.
  Status open(uint32_t peer, Accept accept);
  /// Closes it, in order; from a fiber. Its memory stays.
  void close(uint32_t peer);
  /// Destroys it; from a fiber. No program of it may be running.
  void destroy(uint32_t peer);
  /// Its process dies, as the others see it; its own programs go on until they notice. Then destroy it.
  void kill(uint32_t peer);

  /// Its programs have to end.
  bool is_ending(uint32_t peer) const { return places_[peer].is_ending; }
  bool has(uint32_t peer) const { return places_[peer].core != nullptr; }
  endpoint::EndpointCore& core(uint32_t peer) { return *places_[peer].core; }
  /// Wakes all its pollers.
  void wake(uint32_t peer);
  void wake_all();
  static std::string address(uint32_t peer);

  /// Lets simulated time pass; from a fiber.
  void sleep(base::Nanoseconds lasting) { world_.sleep(lasting); }
  sim::World& world() { return world_; }
  sim::SimFaults& faults() { return internet_.fabric().faults(); }

 private:
  struct Place {
    std::unique_ptr<endpoint::EndpointCore> core;
    sim::SimNetwork* network = nullptr;  // owned by the core; null while there is none to be closed
    sim::World::AgentId agent = 0;
    bool is_ending = false;
  };

  Result<base::Settings> settings_of(uint32_t peer) const;

  const ChannelPlan& plan_;
  sim::World world_;
  sim::SimInternet internet_;
  std::vector<Place> places_;
};

}  // namespace faro::simulation
