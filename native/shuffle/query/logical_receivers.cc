#include "shuffle/query/logical_receivers.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace faro {

std::string_view to_string(Delivery delivery) noexcept {
  switch (delivery) {
    case Delivery::worker:
      return "worker";
    case Delivery::node:
      return "node";
    case Delivery::replicate:
      return "replicate";
  }
  return "?";
}

namespace shuffle {

LogicalReceivers LogicalReceivers::of(const ShuffleSpec& spec,
                                      const std::function<uint32_t(uint32_t)>& node_of) {
  LogicalReceivers receivers;
  if (spec.delivery == Delivery::worker) {
    receivers.workers_ = spec.receivers;
    receivers.first_.resize(spec.receivers.size() + 1);
    std::iota(receivers.first_.begin(), receivers.first_.end(), 0u);
    return receivers;
  }
  std::map<uint32_t, size_t> place_of_node;
  std::vector<std::vector<uint32_t>> of_node;
  for (const uint32_t worker : spec.receivers) {
    const auto [at, is_first] = place_of_node.emplace(node_of(worker), of_node.size());
    if (is_first) of_node.emplace_back();
    of_node[at->second].push_back(worker);
  }
  for (const std::vector<uint32_t>& workers : of_node) {
    receivers.first_.push_back(static_cast<uint32_t>(receivers.workers_.size()));
    receivers.workers_.insert(receivers.workers_.end(), workers.begin(), workers.end());
  }
  receivers.first_.push_back(static_cast<uint32_t>(receivers.workers_.size()));
  if (spec.delivery == Delivery::replicate) {
    std::vector<uint32_t>& all = receivers.everybody_.emplace_back(of_node.size());
    std::iota(all.begin(), all.end(), 0u);
  }
  return receivers;
}

uint32_t LogicalReceivers::of_worker(uint32_t worker) const noexcept {
  const auto at = std::ranges::find(workers_, worker);
  if (at == workers_.end()) return count();
  const auto place = static_cast<uint32_t>(at - workers_.begin());
  return static_cast<uint32_t>(std::ranges::upper_bound(first_, place) - first_.begin()) - 1;
}

}  // namespace shuffle
}  // namespace faro
