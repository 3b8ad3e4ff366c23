// Orders: no policy at all. Each host sends message after message, in an order that an engine has without a thought of the network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lab/network/sending.h"
#include "lab/workload/chance.h"

namespace faro::network {

enum class Order {
  same,       ///< host 0, then 1, then 2, and so on, on every host
  own_first,  ///< the host after the own one, and so on
  random,     ///< a message to any that has more to get
};

/// Threads: one.
class Orders final : public Sending {
 public:
  Orders(Order order, uint32_t message_packets, uint64_t seed);

  void begin(Network& network) override;
  uint32_t next(uint32_t host) override;
  void on_lost(uint32_t host, uint32_t target) override;

 private:
  struct Host {
    std::vector<uint32_t> targets;  // that have more to get, in the order of this host
    size_t at = 0;                  // of targets: the one whose message is sent
    uint32_t sent = 0;              // of that message
  };

  void choose(Host& host);

  const Order order_;
  const uint32_t message_packets_;
  workload::Chance chance_;
  Network* network_ = nullptr;
  std::vector<Host> hosts_;
};

}  // namespace faro::network
