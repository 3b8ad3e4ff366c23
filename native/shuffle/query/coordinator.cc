#include "shuffle/query/coordinator.h"

#include <algorithm>
#include <utility>

#include "shuffle/query/query_messages.h"

namespace faro::shuffle {

// So long it waits for the cause when the balances of the participants do not add up.
constexpr int kTicksToWait = 2;

void Coordinator::declare(const std::vector<bool>& nodes) {
  for (uint32_t n = 0; n < pending_.size(); ++n) pending_[n] = nodes[n] && pending_[n];
}

void Coordinator::vote(uint32_t node, uint64_t balance, base::Nanoseconds now) {
  if (!voted_since_) voted_since_ = now;
  balances_.try_emplace(node, balance);
  pending_[node] = false;
}

Coordinator::Verdict Coordinator::judge(const QueryNodes& nodes, bool has_failed) {
  const auto is_missed = [&](uint32_t n) { return pending_[n] && !nodes.has_lost(n); };
  if (std::ranges::any_of(cluster_.there(), is_missed) ||
      std::ranges::any_of(nodes.awaited(), is_missed)) {
    return Verdict::wait;
  }
  if (has_failed || is_balanced(nodes)) return Verdict::decide;
  if (!ticks_to_wait_) ticks_to_wait_ = kTicksToWait;
  return *ticks_to_wait_ > 0 ? Verdict::wait : Verdict::unbalanced;
}

bool Coordinator::is_balanced(const QueryNodes& nodes) const {
  uint64_t sum = 0;
  for (const auto& [node, balance] : balances_) sum += nodes.contains(node) ? balance : 0;
  return sum == 0;
}

bool Coordinator::tick() {
  if (!ticks_to_wait_) return false;
  --*ticks_to_wait_;
  return true;
}

Outbound Coordinator::announce(const QueryNodes& nodes, const Status& outcome, uint64_t low_water) {
  Outbound told;
  std::vector<bool> to_confirm(pending_.size());
  for (const uint32_t n : cluster_.there()) {
    if (n == cluster_.own()) continue;
    to_confirm[n] = nodes.contains(n) && !nodes.has_lost(n);
    // A node that failed it may not have known which nodes take part, and has told everybody.
    if (nodes.contains(n) || !outcome.ok())
      told.send(n, outcome_of(query_, cluster_.own(), outcome, low_water));
  }
  pending_ = std::move(to_confirm);
  return told;
}

bool Coordinator::is_confirmed() const {
  return std::find(pending_.begin(), pending_.end(), true) == pending_.end();
}

}  // namespace faro::shuffle
