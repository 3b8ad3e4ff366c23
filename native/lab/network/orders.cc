#include "lab/network/orders.h"

#include <algorithm>

#include "lab/network/network.h"

namespace faro::network {

Orders::Orders(Order order, uint32_t message_packets, uint64_t seed)
    : order_(order), message_packets_(message_packets), chance_(workload::mix(seed, 2)) {}

void Orders::begin(Network& network) {
  network_ = &network;
  const uint32_t count = network.hosts();
  hosts_.resize(count);
  for (uint32_t host = 0; host < count; ++host) {
    const uint32_t first = order_ == Order::same ? 0 : host + 1;
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t target = (first + i) % count;
      if (target != host && network.left(host, target) != 0) hosts_[host].targets.push_back(target);
    }
    if (order_ == Order::random) choose(hosts_[host]);
  }
}

void Orders::choose(Host& host) {
  host.sent = 0;
  if (order_ == Order::random && !host.targets.empty())
    host.at = chance_.below(host.targets.size());
  if (host.at >= host.targets.size()) host.at = 0;
}

uint32_t Orders::next(uint32_t number) {
  Host& host = hosts_[number];
  while (!host.targets.empty()) {
    const uint32_t target = host.targets[host.at];
    if (network_->left(number, target) == 0) {
      host.targets.erase(host.targets.begin() + static_cast<ptrdiff_t>(host.at));
      choose(host);
    } else if (host.sent == message_packets_) {
      ++host.at;
      choose(host);
    } else {
      ++host.sent;
      return target;
    }
  }
  return kNobody;
}

void Orders::on_lost(uint32_t number, uint32_t target) {
  std::vector<uint32_t>& targets = hosts_[number].targets;
  if (std::ranges::find(targets, target) == targets.end()) targets.push_back(target);
}

}  // namespace faro::network
