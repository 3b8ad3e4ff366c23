#include "lab/simulation/channels/peers.h"

#include <fmt/format.h>

#include <utility>

#include "base/return_if_error.h"
#include "lab/simulation/transport/sim_waiter.h"

namespace faro::simulation {

Peers::Peers(const ChannelPlan& plan)
    : plan_(plan), world_(plan.seed, plan.knobs), internet_(world_), places_(plan.peer_count()) {}

Peers::~Peers() {
  // Fibers ended in the middle of calls: nothing can be destroyed in order.
  for (Place& place : places_) {
    if (world_.failed()) (void)place.core.release();
  }
}

std::string Peers::address(uint32_t peer) { return fmt::format("peer{}:7000", peer); }

Result<base::Settings> Peers::settings_of(uint32_t peer) const {
  Config config;
  const auto set = [&config](const char* name, uint64_t value) { return config.set(name, value); };
  FARO_RETURN_IF_ERROR(set("wait.yields", plan_.wait_yields));
  // A doorbell that does not ring has to be seen as the deadlock it is.
  FARO_RETURN_IF_ERROR(set("wait.sleep_ms", 10'000));
  FARO_RETURN_IF_ERROR(set("liveness.timeout_ms", plan_.liveness_ms));
  FARO_RETURN_IF_ERROR(set("connect.timeout_ms", 3'000));
  FARO_RETURN_IF_ERROR(set("close.timeout_ms", 6'000));
  FARO_RETURN_IF_ERROR(set("link.mend_ms", plan_.mend_ms));
  FARO_RETURN_IF_ERROR(set("memory.limit_bytes", plan_.peers[peer].memory_limit_bytes));
  return base::Settings::resolve_without_nodes(config);
}

Status Peers::open(uint32_t peer, Accept accept) {
  const sim::World::Outside outside(world_);
  Place& place = places_[peer];
  FARO_ASSIGN_OR_RETURN(const base::Settings settings, settings_of(peer));
  FARO_ASSIGN_OR_RETURN(auto network,
                        sim::SimNetwork::create(internet_, peer, address(peer), "host"));
  sim::SimNetwork* const own = network.get();
  FARO_ASSIGN_OR_RETURN(
      place.core, endpoint::EndpointCore::open(settings,
                                               {.name = fmt::format("peer {}", peer),
                                                .poller_count = plan_.peers[peer].pollers,
                                                .channel_limit = plan_.peers[peer].channel_limit,
                                                .accept = std::move(accept)},
                                               std::move(network), [this] {
                                                 return std::make_unique<sim::SimWaiter>(world_);
                                               }));
  place.is_ending = false;
  place.network = own;
  place.agent = world_.add_agent(
      fmt::format("network thread of peer {}", peer),
      [core = place.core.get()] { return core->do_work(); }, peer);
  own->set_agent(place.agent);
  return Status::Ok();
}

void Peers::close(uint32_t peer) {
  Place& place = places_[peer];
  if (place.network == nullptr) return;
  place.is_ending = true;
  // From here on this fiber is the network thread; two at a time there are nowhere.
  world_.remove_agent(place.agent);
  place.network->clear_agent();
  place.network = nullptr;
  place.core->close();
  wake(peer);
}

void Peers::destroy(uint32_t peer) {
  close(peer);
  places_[peer].core.reset();
}

void Peers::kill(uint32_t peer) {
  Place& place = places_[peer];
  if (place.network == nullptr) return;
  place.is_ending = true;
  faults().spare(peer);
  place.network->die();
  wake(peer);
}

void Peers::wake(uint32_t peer) {
  endpoint::EndpointCore& core = *places_[peer].core;
  for (uint32_t p = 0; p < core.poller_count(); ++p) core.poller(p).waiting().wake();
}

void Peers::wake_all() {
  for (uint32_t peer = 0; peer < plan_.peer_count(); ++peer) {
    if (has(peer)) wake(peer);
  }
}

}  // namespace faro::simulation
