#include "lab/network/loads.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "lab/workload/chance.h"

namespace faro::network {
namespace {

double factor_of(Sizes sizes, workload::Chance& chance, uint32_t rank) {
  constexpr uint64_t kSteps = 1u << 20;
  switch (sizes) {
    case Sizes::even:
      return 1;
    case Sizes::spread:
      return std::exp2(4 * static_cast<double>(chance.below(kSteps)) / kSteps - 2);
    case Sizes::few:
      return chance.one_in(8) ? 8 : 1;
    case Sizes::skewed:
      return 4.0 / (1 + rank);
  }
  return 1;
}

}  // namespace

const char* sizes_name(Sizes sizes) {
  constexpr const char* kNames[] = {"even", "spread", "few", "skewed"};
  return kNames[static_cast<size_t>(sizes)];
}

Network::Load make_load(Sizes sizes, uint32_t hosts, uint32_t packets, uint64_t seed) {
  workload::Chance chance(workload::mix(seed, 3));
  Network::Load load(size_t{hosts} * hosts);
  for (uint32_t host = 0; host < hosts; ++host) {
    for (uint32_t target = 0; target < hosts; ++target) {
      if (host == target) continue;
      const uint32_t rank = (7 * host + 3 * target) % hosts;
      load[size_t{host} * hosts + target] =
          static_cast<uint32_t>(packets * factor_of(sizes, chance, rank));
    }
  }
  return load;
}

Network::Load endless_load(uint32_t hosts) {
  return Network::Load(size_t{hosts} * hosts, Network::kEndless);
}

uint64_t packets_of(const Network::Load& load) {
  return std::accumulate(load.begin(), load.end(), uint64_t{0});
}

uint64_t bound_of(const Network::Load& load, uint32_t hosts) {
  std::vector<uint64_t> sent(hosts), got(hosts);
  for (uint32_t host = 0; host < hosts; ++host) {
    for (uint32_t target = 0; target < hosts; ++target) {
      sent[host] += load[size_t{host} * hosts + target];
      got[target] += load[size_t{host} * hosts + target];
    }
  }
  return std::max(*std::ranges::max_element(sent), *std::ranges::max_element(got));
}

}  // namespace faro::network
