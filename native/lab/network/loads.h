// Loads: what is to be sent, packets from each host to each, and the least time that takes.
#pragma once

#include <cstdint>

#include "lab/network/network.h"

namespace faro::network {

/// How the sizes of pairs differ.
enum class Sizes {
  even,    ///< not at all
  spread,  ///< from a quarter of the mean to four times as much, as likely above as below
  few,     ///< one pair in eight has eight times as much
  skewed,  ///< by Zipf, of each host's targets in an order of its own: some hosts get far more than others
};

const char* sizes_name(Sizes sizes);

/// `packets` is what a pair of an even load has.
Network::Load make_load(Sizes sizes, uint32_t hosts, uint32_t packets, uint64_t seed);
Network::Load endless_load(uint32_t hosts);

uint64_t packets_of(const Network::Load& load);
/// In packets' times: as many as the busiest card sends or gets. Nothing is faster.
uint64_t bound_of(const Network::Load& load, uint32_t hosts);

}  // namespace faro::network
