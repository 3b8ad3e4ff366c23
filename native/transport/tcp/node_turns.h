// NodeTurns: the turns of a node, over all its links, with the timer that they need.
#pragma once

#include <cstdint>

#include "base/unique_fd.h"
#include "faro/status.h"
#include "transport/schedule/turns.h"
#include "transport/transport.h"

namespace faro::transport::tcp {

/// Threads: as Turns; open and destruction: network thread, or when that does not run.
class NodeTurns final : private schedule::Turns::Alarm {
 public:
  /// The arguments are those of Turns.
  NodeTurns(const schedule::PhaseSettings& settings, uint32_t self, uint32_t node_count)
      : turns_(settings, self, node_count, *this) {}
  ~NodeTurns() override;
  NodeTurns(const NodeTurns&) = delete;
  NodeTurns& operator=(const NodeTurns&) = delete;

  /// Before the first link enters; has no effect afterwards. Errors: system_error.
  Status open(Reactor& reactor);

  schedule::Turns& turns() noexcept { return turns_; }

 private:
  void set(base::Nanoseconds at, base::Nanoseconds now) noexcept override;

  Reactor* reactor_ = nullptr;
  base::UniqueFd timer_;
  schedule::Turns turns_;
};

}  // namespace faro::transport::tcp
