#include "shuffle/query/idle_links.h"

#include <algorithm>

#include "shuffle/query/query_messages.h"
#include "shuffle/query/tracked_query.h"

namespace faro::shuffle {
namespace {

wire::QueryMessage rest(wire::RestStep step) {
  return message_of(wire::QueryMessageKind::rest, {}, static_cast<uint32_t>(step), 0);
}

}  // namespace

// Who takes part in one that is not declared yet is not known: perhaps this node and the peer.
bool IdleLinks::is_needed(uint32_t node) const {
  return std::ranges::any_of(known_.all(), [&](const auto& known) {
    return known.first.issuer == node || known.second->nodes().contains(node);
  });
}

void IdleLinks::tick(Outbound& out) {
  const ClusterView& cluster = context_.cluster;
  if (idle_ == 0 || !cluster.nodes_change()) return;
  const std::set<uint32_t> there = cluster.there();
  for (auto peer = there.upper_bound(cluster.own()); peer != there.end(); ++peer) {
    if (is_needed(*peer)) {
      idle_since_.erase(*peer);
    } else if (context_.now - idle_since_.try_emplace(*peer, context_.now).first->second >= idle_) {
      ask(*peer, out);
    }
  }
}

// Queries that begin from now on wait for the peer.
void IdleLinks::ask(uint32_t peer, Outbound& out) {
  Outbound told;
  told.send(peer, rest(wire::RestStep::ask));
  if (!hold_(peer, true)) return;
  asked_.insert(peer);
  context_.cluster.part(peer);
  out.take(std::move(told));
}

bool IdleLinks::hear(uint32_t peer, wire::RestStep step, Outbound& out) {
  switch (step) {
    case wire::RestStep::ask:
      if (!asks(peer) && context_.cluster.is_there(peer)) answer(peer, out);
      return false;
    case wire::RestStep::yes:
      if (!asked_.contains(peer)) return false;
      out.let_go.push_back(peer);
      agreed_.insert(peer);
      asked_.erase(peer);
      return false;
    case wire::RestStep::no:
      if (asked_.erase(peer) == 0) return false;
      context_.cluster.meet_again(peer);
      idle_since_.erase(peer);
      (void)hold_(peer, false);
      return true;
  }
  return false;
}

void IdleLinks::answer(uint32_t peer, Outbound& out) {
  Outbound told;
  const bool agrees = context_.cluster.nodes_change() && !is_needed(peer) && hold_(peer, true);
  told.send(peer, rest(agrees ? wire::RestStep::yes : wire::RestStep::no));
  if (agrees) {
    agreed_.insert(peer);
    context_.cluster.part(peer);
  }
  out.take(std::move(told));
}

bool IdleLinks::ends(uint32_t peer) {
  if (agreed_.erase(peer) == 0) return false;
  idle_since_.erase(peer);
  return true;
}

void IdleLinks::forget(uint32_t peer) {
  idle_since_.erase(peer);
  asked_.erase(peer);
  agreed_.erase(peer);
}

}  // namespace faro::shuffle
