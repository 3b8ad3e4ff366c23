// Scheduled: the phases of native/transport/schedule over the model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "lab/network/sending.h"
#include "transport/schedule/phases.h"

namespace faro::network {

/// Threads: one.
class Scheduled final : public Sending {
 public:
  /// `settings` are checked.
  explicit Scheduled(const transport::schedule::PhaseSettings& settings) : settings_(settings) {}

  void begin(Network& network) override;
  uint32_t next(uint32_t host) override;
  void on_sent(uint32_t host, uint32_t target) override;
  void on_note(uint32_t host, uint32_t from, const Note& note) override;
  void on_alarm(uint32_t host) override;

 private:
  struct Host {
    transport::schedule::Phases phases;
    bool has_alarm = false;
    uint32_t little = 0;  // the host that was looked at last for what passes without a turn
  };

  uint64_t bytes_left(uint32_t host, uint32_t target) const;
  /// After each call of its phases.
  void follow_up(uint32_t host);

  const transport::schedule::PhaseSettings settings_;
  Network* network_ = nullptr;
  std::vector<Host> hosts_;
};

}  // namespace faro::network
