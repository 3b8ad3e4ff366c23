// WorkerCore and its links: how a worker lets go of the rings of a node that was lost, and takes up those
// of the one that starts again in its place (session/README.md, "Return"). All of it on the worker's own
// thread, at the beginning of an operation: no call of this worker is inside the old rings then.
#include <fmt/format.h>

#include <algorithm>

#include "shuffle/node_core.h"
#include "shuffle/shuffle_core.h"

namespace faro::detail {

std::span<InLane> WorkerCore::in_lanes_of(uint32_t node) noexcept {
  const session::Node& peer = node_.membership().nodes()[node];
  const size_t rings_per_lane = node_.settings().rings_per_lane;
  return std::span(in_lanes_).subspan(peer.first_worker * rings_per_lane,
                                      peer.worker_count * rings_per_lane);
}

std::span<OutLane> WorkerCore::out_lanes_of(uint32_t node) noexcept {
  const session::Node& peer = node_.membership().nodes()[node];
  const size_t rings_per_lane = node_.settings().rings_per_lane;
  return std::span(out_lanes_)
      .subspan(peer.first_worker * rings_per_lane, peer.worker_count * rings_per_lane);
}

// Whether all lanes have the rings of the links as they are now.
bool WorkerCore::take_up_links() {
  const uint64_t changes = node_.membership().link_changes();
  if (changes == link_changes_seen_ && links_.front() != nullptr) return true;
  bool all = true;
  for (uint32_t node = 0; node < links_.size(); ++node) all &= take_up_link(node);
  if (all) link_changes_seen_ = changes;
  return all;
}

// Nothing is sent into rings that lead nowhere.
Status WorkerCore::check_links(const ShuffleSpec& spec) {
  session::Membership& membership = node_.membership();
  if (membership.link_changes() == link_changes_seen_) return Status::Ok();
  for (const session::Node& peer : membership.nodes()) {
    const auto is_there = [&](uint32_t worker) {
      return worker >= peer.first_worker && worker - peer.first_worker < peer.worker_count;
    };
    const bool takes_part = std::ranges::any_of(spec.senders, is_there) ||
                            std::ranges::any_of(spec.receivers, is_there);
    if (!takes_part || take_up_link(peer.number)) continue;
    return Status(Code::wrong_state,
                  fmt::format("stage {}: worker {} still holds a batch or a claim of {} as it was "
                              "before it started again; release it first",
                              spec.stage, number_, peer.name));
  }
  return Status::Ok();
}

bool WorkerCore::take_up_link(uint32_t node) {
  session::Membership& membership = node_.membership();
  std::shared_ptr<transport::DataLink> link = membership.link(node);
  if (link == links_[node]) return true;
  if (links_[node] != nullptr) {
    abandon_lanes(node);
    if (uses_lanes(node)) return false;
  }
  const session::Node& peer = membership.nodes()[node];
  const ring::Layout out = membership.outgoing_layout(node);
  const ring::Layout in = membership.incoming_layout(node);
  const std::span<OutLane> to = out_lanes_of(node);
  const std::span<InLane> from = in_lanes_of(node);
  for (uint32_t remote = 0; remote < peer.worker_count; ++remote) {
    for (uint32_t k = 0; k < out.rings_per_lane; ++k) {
      const size_t lane = size_t{remote} * out.rings_per_lane + k;
      to[lane].ring = &link->outgoing(out.ring(local_index_, remote, k));
      from[lane].ring = &link->incoming(in.ring(remote, local_index_, k));
      from[lane].slots.assign(slots_.size(), Binding{});
      from[lane].broken = false;
      counters::set(
          counter_file_.incoming(local_index_, peer.first_worker + remote, k).unreleased_bytes, 0);
    }
  }
  const uint32_t first_group =
      membership.first_ready(node, local_index_) / ring::ReadySet::kRingsPerGroup;
  for (uint32_t ring = 0; ring < in.rings_of_receiver(); ring += ring::ReadySet::kRingsPerGroup)
    ready_.clear_external(first_group + ring / ring::ReadySet::kRingsPerGroup);
  link->attach_ready(ready_, first_group, local_index_);
  links_[node] = std::move(link);  // the last worker to do this gives the memory back
  return true;
}

// What lies in the rings of a lost link, either way, is of queries that cannot be complete any more. Rows that
// came may also be of queries that the lost node had no part in, or made up and that began since: whether
// a query fails by the loss is for the query table to say, and it knew of the loss before the link changed.
void WorkerCore::abandon_lanes(uint32_t node) {
  for (InLane& lane : in_lanes_of(node)) {
    while (lane.first != nullptr) forget(*lane.first->inbox, lane.sender);
    for (const Binding& binding : lane.slots) {
      if (binding.state == Binding::State::bound) forget(*binding.inbox, lane.sender);
    }
  }
  shuffle::QueryTable& queries = node_.queries();
  for (OutLane& lane : out_lanes_of(node)) {
    if (lane.owner != nullptr && !lane.claimed) {
      queries.lose_rows(*lane.owner->query(), node);
      lane.owner->query_failed();
    }
    while (!lane.queue_empty()) {
      ShuffleCore& core = *lane.queue->core;
      queries.lose_rows(*core.query(), node);
      drop_queued(lane, core, false);
    }
  }
}

// A batch that the engine holds lies in one of them, or its open claim does.
bool WorkerCore::uses_lanes(uint32_t node) noexcept {
  const auto holds = [](const InLane& lane) { return lane.ring->unreleased_bytes() > 0; };
  const auto is_claimed = [](const OutLane& lane) { return lane.claimed; };
  return std::ranges::any_of(in_lanes_of(node), holds) ||
         std::ranges::any_of(out_lanes_of(node), is_claimed);
}

}  // namespace faro::detail
