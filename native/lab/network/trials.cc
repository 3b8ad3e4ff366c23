#include "lab/network/trials.h"

#include <algorithm>
#include <vector>

#include "lab/network/grants.h"
#include "lab/network/loads.h"
#include "lab/network/orders.h"
#include "lab/network/phases_with_barrier.h"
#include "lab/network/scheduled.h"

namespace faro::network {
namespace {

class AnyOutput final : public Sending {
 public:
  explicit AnyOutput(uint64_t seed) : chance_(seed) {}
  void begin(Network& network) override { ports_ = network.hosts(); }
  uint32_t next(uint32_t /*host*/) override { return static_cast<uint32_t>(chance_.below(ports_)); }

 private:
  workload::Chance chance_;
  uint32_t ports_ = 0;
};

}  // namespace

const char* policy_name(Policy policy) {
  constexpr const char* kNames[] = {"same",    "own first", "random", "interleaved",
                                    "barrier", "phases",    "grants"};
  return kNames[static_cast<size_t>(policy)];
}

std::unique_ptr<Sending> make_policy(const Trial& trial) {
  const uint32_t packet = trial.shape.packet_bytes;
  const uint32_t message_packets = std::max(trial.message_bytes / packet, 1u);
  const uint32_t turn_packets = std::max(static_cast<uint32_t>(trial.turn_bytes / packet), 1u);
  const uint64_t seed = trial.shape.seed;
  switch (trial.policy) {
    case Policy::same:
      return std::make_unique<Orders>(Order::same, message_packets, seed);
    case Policy::own_first:
      return std::make_unique<Orders>(Order::own_first, message_packets, seed);
    case Policy::random:
      return std::make_unique<Orders>(Order::random, message_packets, seed);
    case Policy::interleaved:
      return std::make_unique<Orders>(Order::same, 1, seed);
    case Policy::barrier:
      return std::make_unique<PhasesWithBarrier>(turn_packets);
    case Policy::phases:
      return std::make_unique<Scheduled>(transport::schedule::PhaseSettings{
          .turn_bytes = trial.turn_bytes, .from_bytes = trial.turn_bytes / 4});
    case Policy::grants:
      return std::make_unique<Grants>(turn_packets);
  }
  return nullptr;
}

double share_of_rate(const Trial& trial, uint32_t packets) {
  return share_of_rate(trial.shape, *make_policy(trial), packets);
}

double share_of_rate(const NetworkShape& shape, Sending& sending, uint32_t packets) {
  Network network(shape, endless_load(shape.hosts), sending);
  const base::Nanoseconds from = packets / 4 * shape.packet_ns();
  network.run(from);
  const uint64_t before = network.delivered();
  network.run(from + packets * shape.packet_ns());
  return static_cast<double>(network.delivered() - before) / packets / shape.hosts;
}

Finish finish(const Trial& trial, const Network::Load& load) {
  const auto sending = make_policy(trial);
  Network network(trial.shape, load, *sending);
  network.run();
  const auto bound = static_cast<double>(bound_of(load, trial.shape.hosts));
  const auto packets = static_cast<double>(packets_of(load));
  return {.times_bound = static_cast<double>(network.last_delivery_ns()) /
                         static_cast<double>(trial.shape.packet_ns()) / bound,
          .lost_per_packet = static_cast<double>(network.lost()) / packets,
          .is_complete = network.delivered() == packets_of(load)};
}

double saturated_share(uint32_t ports, uint32_t packets, uint64_t seed) {
  NetworkShape shape;
  shape.hosts = ports;
  shape.between.buffer_packets = 4;  // so that there is always one in front
  shape.seed = seed;
  AnyOutput sending(workload::mix(seed, 4));
  return share_of_rate(shape, sending, packets);
}

}  // namespace faro::network
