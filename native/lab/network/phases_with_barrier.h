// PhasesWithBarrier: the paper's schedule. All hosts send to the host that is p numbers after them, and all wait for the last one
// before they go on to the next p.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/network/sending.h"

namespace faro::network {

/// Threads: one.
class PhasesWithBarrier final : public Sending {
 public:
  explicit PhasesWithBarrier(uint32_t turn_packets) : turn_packets_(turn_packets) {}

  void begin(Network& network) override;
  uint32_t next(uint32_t host) override;
  void on_sent(uint32_t host, uint32_t target) override;
  void on_alarm(uint32_t host) override;

 private:
  bool has_more(uint32_t host) const;
  void enter_phase();

  const uint32_t turn_packets_;
  Network* network_ = nullptr;
  uint32_t phase_ = 1;
  uint32_t waited_for_ = 0;
  std::vector<uint32_t> sent_;  // in this phase
  std::vector<bool> is_done_;   // with it
};

}  // namespace faro::network
