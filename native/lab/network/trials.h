// Trials: one policy over one network, and what share of the links it uses.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "lab/network/network.h"
#include "lab/network/sending.h"

namespace faro::network {

enum class Policy { same, own_first, random, interleaved, barrier, phases, grants };

inline constexpr std::array kPolicies = {Policy::same,        Policy::own_first, Policy::random,
                                         Policy::interleaved, Policy::barrier,   Policy::phases,
                                         Policy::grants};

const char* policy_name(Policy policy);

struct Trial {
  Policy policy = Policy::phases;
  NetworkShape shape;
  uint32_t message_bytes = 512 << 10;
  uint64_t turn_bytes = uint64_t{4} << 20;
};

/// What came of a load.
struct Finish {
  double times_bound = 0;      // the time, in times of the least that it can take
  double lost_per_packet = 0;  // packets that had to be sent again
  bool is_complete = false;
};

std::unique_ptr<Sending> make_policy(const Trial& trial);

/// The share of the links' rate that is used, with endless traffic, over the time of `packets` packets, after a quarter of that.
double share_of_rate(const Trial& trial, uint32_t packets);
double share_of_rate(const NetworkShape& shape, Sending& sending, uint32_t packets);

Finish finish(const Trial& trial, const Network::Load& load);

/// The share of the rate that saturated inputs get with one queue each, every packet for any output.
double saturated_share(uint32_t ports, uint32_t packets, uint64_t seed);

}  // namespace faro::network
