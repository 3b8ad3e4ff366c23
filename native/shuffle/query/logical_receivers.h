// LogicalReceivers: what the receivers of a shuffle are for those who send, by its delivery.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "faro/shuffle.h"

namespace faro::shuffle {

/// With Delivery::worker each worker of the list is one, in its order; else each of their nodes is, in the order in which these are first
/// mentioned. Threads: as a value.
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
  /// To which of them rows are sent together, by the spec whose receivers they are: its groups, or with Delivery::replicate one of all.
  /// Empty: to each by itself.
  const std::vector<std::vector<uint32_t>>& groups(const ShuffleSpec& spec) const noexcept {
    return everybody_.empty() ? spec.groups : everybody_;
  }
  /// Whose a worker is; count(): of none.
  uint32_t of_worker(uint32_t worker) const noexcept;

 private:
  std::vector<uint32_t> workers_;                 // receiver by receiver
  std::vector<uint32_t> first_;                   // of each receiver, and where the last one ends
  std::vector<std::vector<uint32_t>> everybody_;  // the group of all; empty: there is none
};

}  // namespace faro::shuffle
