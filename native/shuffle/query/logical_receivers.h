// LogicalReceivers: what the receivers of a shuffle are for those who send, by its delivery.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "faro/shuffle.h"

namespace faro::shuffle {

/// With Delivery::worker each worker of the list is one, in its order; with Delivery::node each of their nodes is, in the order in which
/// these are first mentioned. Threads: as a value.
class LogicalReceivers {
 public:
  /// `node_of`: of a worker. The spec names its receivers.
  static LogicalReceivers of(const ShuffleSpec& spec,
                             const std::function<uint32_t(uint32_t)>& node_of);

  uint32_t count() const noexcept { return static_cast<uint32_t>(first_.size()) - 1; }
  /// The listed workers of one.
  std::span<const uint32_t> workers(uint32_t receiver) const noexcept {
    return {workers_.data() + first_[receiver], workers_.data() + first_[receiver + 1]};
  }
  /// Whose a worker is; count(): of none.
  uint32_t of_worker(uint32_t worker) const noexcept;

 private:
  std::vector<uint32_t> workers_;  // receiver by receiver
  std::vector<uint32_t> first_;    // of each receiver, and where the last one ends
};

}  // namespace faro::shuffle
