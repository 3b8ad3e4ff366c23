#include "lab/simulation/transport/sim_agents.h"

#include <algorithm>
#include <utility>

namespace faro::sim {

uint32_t AgentTable::add(std::string name, std::function<bool()> do_work, Group group) {
  agents_.push_back({std::move(name), std::move(do_work), conditions_.draw_weight(),
                     conditions_.stalls.not_before(group, conditions_.now),
                     conditions_.knobs.agent_idle_least, group});
  return static_cast<uint32_t>(agents_.size() - 1);
}

void AgentTable::wake(uint32_t agent) {
  Agent& woken = agents_[agent];
  if (std::exchange(woken.woken, true)) return;
  woken.due = std::min(woken.due, conditions_.draw_wake_up(woken.group));
}

void AgentTable::look_by(uint32_t agent, Nanoseconds when) {
  Agent& due = agents_[agent];
  due.due = std::min(due.due, conditions_.stalls.not_before(due.group, when));
}

void AgentTable::stall(Group group) {
  for (Agent& agent : agents_) {
    if (agent.group == group) agent.due = conditions_.stalls.not_before(group, agent.due);
  }
}

bool AgentTable::any_woken() const {
  return std::any_of(agents_.begin(), agents_.end(),
                     [](const Agent& agent) { return agent.woken && !agent.removed; });
}

Nanoseconds AgentTable::next() const {
  Nanoseconds next = base::kForever;
  for (const Agent& agent : agents_) {
    if (!agent.removed) next = std::min(next, agent.due);
  }
  return next;
}

uint64_t AgentTable::due_weight() const {
  uint64_t total = 0;
  for (const Agent& agent : agents_) {
    if (is_due(agent)) total += agent.weight;
  }
  return total;
}

std::optional<uint32_t> AgentTable::pick(uint64_t& chosen) const {
  for (uint32_t number = 0; number < agents_.size(); ++number) {
    const Agent& agent = agents_[number];
    if (!is_due(agent)) continue;
    if (chosen < agent.weight) return number;
    chosen -= agent.weight;
  }
  return std::nullopt;
}

std::optional<uint32_t> AgentTable::late() const {
  std::optional<uint32_t> late;
  for (uint32_t number = 0; number < agents_.size(); ++number) {
    const Agent& agent = agents_[number];
    if (!is_due(agent) || conditions_.now <= agent.due + conditions_.knobs.late_most) continue;
    if (!late || agent.due < agents_[*late].due) late = number;
  }
  return late;
}

void AgentTable::run(uint32_t number) {
  Agent& agent = agents_[number];
  agent.woken = false;
  agent.due = base::kForever;  // what do_work asks for, or the idle interval below, comes first
  running_group_ = agent.group;
  const bool worked = agent.do_work();
  running_group_ = kNoGroup;
  if (agent.removed) {
    agent.do_work = nullptr;
    return;
  }
  const Knobs& knobs = conditions_.knobs;
  agent.idle = worked ? knobs.agent_idle_least : std::min(agent.idle * 2, knobs.agent_idle_most);
  look_by(number, conditions_.now + conditions_.random.between(agent.idle / 2, agent.idle));
}

}  // namespace faro::sim
