#include "shuffle/query/drains.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/planted.h"
#include "shuffle/query/query_messages.h"
#include "shuffle/query/tracked_query.h"

namespace faro::shuffle {
namespace {

// RELEASED of no process: its sender may need the next one that has the number.
constexpr uint64_t kTakenBack = UINT64_MAX;

wire::QueryMessage released_of(uint32_t node, uint64_t incarnation) {
  wire::QueryMessage message = message_of(wire::QueryMessageKind::released, {}, node, 0);
  message.number = incarnation;
  return message;
}

}  // namespace

// A peer that hears of it late may have another process with that number by then.
wire::QueryMessage Drains::released(uint32_t node) const {
  // Which process has the number of a node that is not linked is not known now.
  return released_of(node,
                     context_.cluster.is_there(node) ? context_.cluster.incarnation(node) : 0);
}

void Drains::begin(uint32_t node) {
  if (context_.cluster.drain(node) == DrainStage::none)
    context_.cluster.set_drain(node, DrainStage::in_use);
}

Status Drains::check(const QueryId& query, const std::vector<uint32_t>& workers) const {
  const ClusterView& cluster = context_.cluster;
  if (cluster.drained().empty() || query.issuer != cluster.own()) return Status::Ok();
  uint32_t node = cluster.own();
  for (size_t i = 0; i < workers.size() && cluster.drain(node) == DrainStage::none; ++i)
    node = cluster.node_of_worker(workers[i]);
  if (cluster.drain(node) == DrainStage::none) return Status::Ok();
  return base::error(Code::invalid_argument,
                     "query {}: {} is being drained, and takes no new queries", query.to_string(),
                     cluster.name(node));
}

bool Drains::is_released(uint32_t node) const {
  const DrainStage stage = context_.cluster.drain(node);
  return stage == DrainStage::released || stage == DrainStage::let_go;
}

bool Drains::is_let_go(uint32_t node) const {
  return context_.cluster.drain(node) == DrainStage::let_go;
}

bool Drains::is_own_node_released_by(uint32_t peer) const {
  const uint32_t own = context_.cluster.own();
  return is_released(own) && has_released(peer, own);
}

void Drains::forget(uint32_t node) {
  ClusterView& cluster = context_.cluster;
  if (is_released(node)) cluster.has_released_former(node) = true;
  cluster.set_drain(node, DrainStage::none);
  cluster.released_by(node).clear();
  on_peer_lost(node);
}

// A peer that was not linked with the former process cannot tell whether that one was meant.
void Drains::on_node_added(uint32_t node, Outbound& out) {
  if (!context_.cluster.has_released_former(node)) return;
  Outbound told;
  for (const uint32_t peer : context_.cluster.there()) {
    if (peer != context_.cluster.own()) told.send(peer, released_of(node, kTakenBack));
  }
  context_.cluster.has_released_former(node) = false;
  out.take(std::move(told));
}

void Drains::hear(uint32_t peer, uint32_t node, uint64_t incarnation) {
  if (node >= context_.cluster.node_count()) return;
  if (incarnation == kTakenBack) {
    context_.cluster.released_by(node).erase(peer);
  } else {
    context_.cluster.released_by(node)[peer] = incarnation;
  }
}

bool Drains::has_released(uint32_t peer, uint32_t node) const {
  const ClusterView& cluster = context_.cluster;
  const std::map<uint32_t, uint64_t>& peers = cluster.released_by(node);
  const auto said = peers.find(peer);
  if (said == peers.end()) return false;
  const uint64_t last = cluster.incarnation(node);  // that was linked here
  if (said->second == 0 || last == 0) return true;
  if (cluster.is_there(node)) return said->second == last;
  // The process that has the number now is not linked here. A former one, which was lost or removed, is not meant.
  return cluster.is_parted(node) || said->second != last;
}

void Drains::on_peer_lost(uint32_t peer) {
  ClusterView& cluster = context_.cluster;
  for (uint32_t node = 0; node < cluster.node_count(); ++node)
    cluster.released_by(node).erase(peer);
}

void Drains::on_peer_joined(uint32_t peer, Outbound& out) const {
  for (const uint32_t node : context_.cluster.drained()) {
    if (is_released(node)) out.send(peer, released(node));
  }
}

void Drains::advance(Outbound& out) {
  ClusterView& cluster = context_.cluster;
  for (const uint32_t node : cluster.drained()) {
    if (cluster.drain(node) == DrainStage::in_use && !is_needed_here(node)) {
      Outbound told;
      for (const uint32_t peer : cluster.there()) {
        if (peer != cluster.own()) told.send(peer, released(node));
      }
      cluster.set_drain(node, DrainStage::released);
      out.take(std::move(told));
    }
    if (cluster.drain(node) == DrainStage::released && !is_needed_here(node) &&
        !is_needed_elsewhere(node)) {
      out.let_go.push_back(node);
      cluster.set_drain(node, DrainStage::let_go);
    }
  }
}

// A node that is drained itself begins no queries, so it waits for all that it has begun. A query of another issuer may be
// declared here after this node has released the drained one.
bool Drains::is_needed_here(uint32_t node) const {
  const uint32_t own = context_.cluster.own();
  return std::ranges::any_of(known_.all(), [&](const auto& known) {
    const TrackedQuery& query = *known.second;
    // Who takes part in one that is not declared yet is not known, and declare() refuses the drained node.
    if (!query.part().is_declared() || (node != own && !query.nodes().contains(node))) return false;
    // Until its issuer is linked, that says nothing.
    return query.id.issuer == own || query.nodes().awaits(query.id.issuer);
  });
}

// The own node waits for the others to end their links. One that is not linked yet may be needed by those that are linked, too,
// and may itself have begun a query that waits for it here; one that is lost fails what needs it.
bool Drains::is_needed_elsewhere(uint32_t node) const {
  const ClusterView& cluster = context_.cluster;
  if (node != cluster.own()) {
    if (base::planted(base::Plant::drained_too_early)) return false;
    if (!known_.waiting_for(node).empty()) return true;
    if (!cluster.is_there(node) && !cluster.is_to_come(node)) return false;
  }
  for (const uint32_t peer : cluster.there()) {
    if (peer == cluster.own()) continue;
    if (node == cluster.own() || !has_released(peer, node)) return true;
  }
  return false;
}

}  // namespace faro::shuffle
