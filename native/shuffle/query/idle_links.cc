#include "shuffle/query/idle_links.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/error.h"
#include "shuffle/query/query_messages.h"
#include "shuffle/query/tracked_query.h"

namespace faro::shuffle {
namespace {

// Who takes part in one that is not declared yet is not known: perhaps this node and the peer.
bool needs(const TrackedQuery& query, uint32_t node) {
  return query.id.issuer == node || query.nodes().contains(node);
}

wire::QueryMessage rest(wire::RestStep step) {
  return message_of(wire::QueryMessageKind::rest, {}, static_cast<uint32_t>(step), 0);
}

// There was no memory to do this node's own step before.
bool is_unsaid(uint32_t peer, const Outbound& out) {
  return std::ranges::count(out.let_go, peer) != 0 ||
         std::ranges::any_of(out.messages, [&](const auto& message) {
           return message.first == peer && message.second.kind == wire::QueryMessageKind::rest;
         });
}

}  // namespace

bool IdleLinks::is_needed(uint32_t node) const {
  return std::ranges::any_of(known_.all(),
                             [&](const auto& known) { return needs(*known.second, node); });
}

void IdleLinks::tick(Outbound& out) {
  ClusterView& cluster = context_.cluster;
  expire(out);
  if (times_.idle == 0) return;
  std::set<uint32_t> unneeded;
  for (const uint32_t peer : cluster.there()) {
    const bool may_rest = asks(peer) && !cluster.is_held(peer) && !cluster.is_wanted_for_good(peer);
    if (may_rest) unneeded.insert(unneeded.end(), peer);
  }
  const std::set<uint32_t> candidates = unneeded;
  for (auto known = known_.all().begin(); known != known_.all().end() && !unneeded.empty(); ++known)
    std::erase_if(unneeded, [&](uint32_t peer) { return needs(*known->second, peer); });
  for (const uint32_t peer : candidates) {
    std::optional<base::Nanoseconds>& since = cluster.idle_since(peer);
    if (!unneeded.contains(peer)) {
      since.reset();
      continue;
    }
    if (!since) since = context_.now;
    if (context_.now - *since >= times_.idle) ask(peer, out);
  }
}

// Such a peer would have this node's queries wait for it forever. Its time begins when it has been told.
void IdleLinks::expire(Outbound& out) {
  ClusterView& cluster = context_.cluster;
  for (uint32_t peer = 0; peer < cluster.node_count(); ++peer) {
    const PeerState state = cluster.state(peer);
    if (state != PeerState::asked && state != PeerState::agreed) continue;
    std::optional<base::Nanoseconds>& since = cluster.idle_since(peer);
    if (!since || is_unsaid(peer, out)) since = context_.now;
    if (context_.now - *since < times_.limit) continue;
    out.end_link(peer,
                 base::error(Code::protocol_error, "it did not {} within connect.timeout_ms = {}",
                             state == PeerState::asked
                                 ? "answer whether the idle link is to be let go"
                                 : "end the idle link, which both nodes had agreed to let go",
                             times_.limit / 1'000'000));
    since = context_.now;
  }
}

// What may find no memory comes first: a link that is held must be known to be.
void IdleLinks::ask(uint32_t peer, Outbound& out) {
  Outbound told;
  told.send(peer, rest(wire::RestStep::ask));
  if (!take(peer, session::Peers::Event::asked)) return;
  context_.cluster.idle_since(peer) = context_.now;
  out.take(std::move(told));
}

bool IdleLinks::hear(uint32_t peer, wire::RestStep step, Outbound& out) {
  switch (step) {
    case wire::RestStep::ask:
      if (!asks(peer) && context_.cluster.is_there(peer)) answer(peer, out);
      return false;
    case wire::RestStep::yes:
      if (!context_.cluster.is_held(peer)) return false;
      out.let_go.push_back(peer);
      (void)take(peer, session::Peers::Event::agreed);
      return false;
    case wire::RestStep::no:
      if (!context_.cluster.is_held(peer)) return false;
      (void)take(peer, session::Peers::Event::stays);
      return true;
  }
  return false;
}

// What may find no memory comes first here, too, as in `ask`.
void IdleLinks::answer(uint32_t peer, Outbound& out) {
  Outbound no, yes;
  no.send(peer, rest(wire::RestStep::no));
  yes.send(peer, rest(wire::RestStep::yes));
  const bool may_rest = !context_.cluster.is_wanted_for_good(peer) && !is_needed(peer);
  if (may_rest && take(peer, session::Peers::Event::agreed)) return out.take(std::move(yes));
  context_.cluster.idle_since(peer).reset();
  out.take(std::move(no));
}

// Whether the link is asked for, held or released now, as the step says.
bool IdleLinks::take(uint32_t peer, session::Peers::Event step) {
  const std::optional<session::PeerView> now = rest_(peer, step);
  if (now) context_.cluster.adopt(peer, *now);
  return now.has_value();
}

}  // namespace faro::shuffle
