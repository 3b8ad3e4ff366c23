// AgentTable: the network threads of a simulated world: functions that are called when they are woken, at
// the time they asked for, and now and then without reason.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "lab/simulation/transport/sim_conditions.h"

namespace faro::sim {

/// Threads: its world's.
class AgentTable {
 public:
  explicit AgentTable(const Conditions& conditions) : conditions_(conditions) {}

  uint32_t add(std::string name, std::function<bool()> do_work, Group group);
  /// Not called again from now on; may be called by its own do_work.
  void remove(uint32_t agent) { agents_[agent].removed = true; }
  void wake(uint32_t agent);
  /// It has to look again by then, at the latest.
  void look_by(uint32_t agent, Nanoseconds when);
  /// Those of this group are stopped now.
  void stall(Group group);

  const std::string& name(uint32_t agent) const { return agents_[agent].name; }
  Nanoseconds due(uint32_t agent) const { return agents_[agent].due; }
  bool any_woken() const;
  /// When the next one is due.
  Nanoseconds next() const;
  /// The sum of the weights of those that are due now.
  uint64_t due_weight() const;
  /// The one at `chosen` in the sum of weights of those that are due; nothing if that is beyond,
  /// and `chosen` counts from there.
  std::optional<uint32_t> pick(uint64_t& chosen) const;
  /// The one that has been due longest, if that is longer than the knobs allow.
  std::optional<uint32_t> late() const;

  void run(uint32_t agent);
  /// The group of the agent that runs.
  Group running_group() const noexcept { return running_group_; }

 private:
  struct Agent {
    std::string name;
    std::function<bool()> do_work;
    uint32_t weight;
    Nanoseconds due;  // the next look
    Nanoseconds idle;
    Group group;
    bool woken = false;
    bool removed = false;
  };

  bool is_due(const Agent& agent) const { return !agent.removed && agent.due <= conditions_.now; }

  const Conditions conditions_;
  std::deque<Agent> agents_;  // a deque: an agent may add another while it runs
  Group running_group_ = kNoGroup;
};

}  // namespace faro::sim
