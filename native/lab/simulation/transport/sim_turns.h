// SimTurns: the turns of a simulated node, over all its links (transport/schedule), with the alarm that they need and what
// has come of turns and nobody has read yet.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lab/simulation/transport/sim_world.h"
#include "lab/simulation/transport/turn_watch.h"
#include "transport/schedule/turns.h"
#include "transport/transport.h"

namespace faro::sim {

class SimPort;

/// Threads: its world's. Its ports share it; events under way hold it weakly.
class SimTurns final : public std::enable_shared_from_this<SimTurns>,
                       private transport::schedule::Turns::Alarm {
 public:
  /// Both outlive it; `reactor` until close.
  SimTurns(World& world, TurnWatch& watch, transport::Reactor& reactor,
           const transport::schedule::PhaseSettings& settings, uint32_t self, uint32_t node_count);
  ~SimTurns() override { watch_.remove(turns_); }
  SimTurns(const SimTurns&) = delete;
  SimTurns& operator=(const SimTurns&) = delete;

  transport::schedule::Turns& turns() noexcept { return turns_; }
  TurnWatch& watch() noexcept { return watch_; }

  /// A message has come by this port: a worker that looks at the network reads it, or the network thread.
  void note_unread(const std::shared_ptr<SimPort>& port);
  /// Reads what has come.
  void read();
  /// Its node has no network thread any more.
  void close() noexcept { reactor_ = nullptr; }

 private:
  void set(base::Nanoseconds at, base::Nanoseconds now) noexcept override;

  World& world_;
  TurnWatch& watch_;
  transport::Reactor* reactor_;
  uint64_t alarms_ = 0;  // the last one counts
  std::vector<std::weak_ptr<SimPort>> unread_;
  transport::schedule::Turns turns_;
};

}  // namespace faro::sim
