#include "shuffle/send/lanes.h"

#include <algorithm>
#include <utility>

#include "shuffle/send/group.h"

#include "wire/open_fields.h"

namespace faro::shuffle {

static_assert(static_cast<int>(Delivery::node) == static_cast<int>(wire::OpenDelivery::node));

// Their rings belong to links: LinkLanes binds them.
std::span<Lane> Lanes::to_node(uint32_t node) {
  if (const auto made = lanes_.find(node); made != lanes_.end()) return made->second;
  const session::Node& peer = worker_.membership.nodes()[node];
  const ring::Layout rings = worker_.membership.outgoing_layout(node);
  const uint32_t count = rings.receiver_ends * rings.rings_per_lane;
  std::vector<Lane> lanes;
  lanes.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t end = i / rings.rings_per_lane;
    const bool is_at_node = session::is_node_end(worker_.settings, rings, end);
    lanes.emplace_back(*this, peer.first_worker + (is_at_node ? 0 : end), is_at_node);
  }
  listed_.reserve(count_ + count);
  const auto made = lanes_.emplace(node, std::move(lanes)).first;
  count_ += count;
  return made->second;
}

void Lanes::forget(uint32_t node) noexcept {
  std::erase_if(listed_, [&](const Lane* lane) {
    return worker_.queries.node_of_worker(lane->receiver()) == node;
  });
  count_ -= lanes_.at(node).size();
  lanes_.erase(node);
}

bool Lanes::end_at_node(Delivery delivery) const noexcept {
  return delivery != Delivery::worker || !worker_.settings.lanes_end_at_workers();
}

Lane& Lanes::to(uint32_t receiver_worker, uint32_t stage, Delivery delivery) {
  const uint32_t node = worker_.queries.node_of_worker(receiver_worker);
  const ring::Layout rings = worker_.membership.outgoing_layout(node);
  const uint32_t end =
      end_at_node(delivery) ? rings.receiver_ends - 1 : index_on_node(receiver_worker);
  return to_node(node)[size_t{end} * rings.rings_per_lane + stage % rings.rings_per_lane];
}

uint32_t Lanes::index_on_node(uint32_t worker) const {
  const uint32_t node = worker_.queries.node_of_worker(worker);
  return worker - worker_.membership.nodes()[node].first_worker;
}

// NodeStreams takes it apart again.
uint16_t Lanes::stream_to(uint32_t receiver_worker, uint16_t slot, Delivery delivery) const {
  if (!end_at_node(delivery)) return slot;
  const uint32_t node = worker_.queries.node_of_worker(receiver_worker);
  const uint32_t workers = worker_.membership.nodes()[node].worker_count;
  return static_cast<uint16_t>(slot * workers + index_on_node(receiver_worker));
}

std::string Lanes::open_fields(Delivery delivery,
                               std::span<const uint32_t> receiver_workers) const {
  const session::Node& node =
      worker_.membership.nodes()[worker_.queries.node_of_worker(receiver_workers.front())];
  std::vector<uint32_t> on_node;
  for (const uint32_t worker : receiver_workers) on_node.push_back(worker - node.first_worker);
  std::vector<std::byte> fields;
  wire::OpenFields::write(fields, static_cast<wire::OpenDelivery>(delivery), on_node,
                          node.worker_count);
  return {reinterpret_cast<const char*>(fields.data()), fields.size()};
}

bool Lanes::are_shared(const LogicalReceivers& receivers, Delivery delivery) const {
  if (!end_at_node(delivery)) return false;
  std::vector<bool> seen(worker_.membership.nodes().size());
  for (uint32_t receiver = 0; receiver < receivers.count(); ++receiver) {
    const uint32_t node = worker_.queries.node_of_worker(receivers.workers(receiver).front());
    if (seen[node]) return true;
    seen[node] = true;
  }
  return false;
}

bool Lanes::is_to_own(const Lane& lane) const {
  if (!lane.is_to_node_) return lane.receiver_ == worker_.number;
  return worker_.queries.node_of_worker(lane.receiver_) == worker_.membership.node();
}

void Lanes::expect_group() {
  groups_.reserve(group_count_ + 1);
  ++group_count_;
}

void Lanes::unlist_groups() noexcept {
  std::erase_if(groups_, [](const Group* group) { return group->is_abandoned(); });
}

// Only the worker itself can take what it sends to itself. So a call that waits makes room here, or it would wait
// forever. After a call that only tries, the engine can receive instead.
bool Lanes::make_room_in_own_ring(Lane& lane) {
  if (!is_to_own(lane) || holds_batches() || !operation_.call_waits()) return false;
  lane.ring_->post();
  (void)receive_side_.poll();
  return receive_side_.spill_own();
}

// --- flushing

void Lanes::list(Lane& lane) {
  if (lane.is_listed_) return;
  lane.is_listed_ = true;
  listed_.push_back(&lane);
}

void Lanes::list(Group& group) noexcept {
  if (group.is_listed_) return;
  group.is_listed_ = true;
  groups_.push_back(&group);  // expect_group has made room
}

void Lanes::flush() {
  post_open_frames();
  worker_.network.flush();
}

void Lanes::post_open_frames() {
  send_queued();
  flush_groups();
  // Closing a frame can list its lane again, but a lane that is still listed is not added twice.
  size_t kept = 0;
  for (size_t i = 0; i < listed_.size(); ++i) {
    Lane& lane = *listed_[i];
    lane.is_listed_ = lane.flush();
    if (lane.is_listed_) listed_[kept++] = &lane;
  }
  listed_.resize(kept);
}

// Their rows go through lanes, which are flushed behind them.
void Lanes::flush_groups() {
  std::erase_if(groups_, [](Group* group) { return !(group->is_listed_ = group->flush()); });
}

// --- what is queued

void Lanes::send_queued() {
  if (!has_queued()) return;
  for (auto& [node, lanes] : lanes_) {
    for (Lane& lane : lanes) lane.send_queued();
  }
  for (Group* const group : groups_) {
    if (group->is_closed()) (void)group->flush();
  }
}

void Lanes::drop_queues() noexcept {
  for (auto& [node, lanes] : lanes_) {
    for (Lane& lane : lanes) lane.queue_.clear();
  }
}

void Lanes::lose(uint32_t node) {
  for (Lane& lane : to_node(node)) lane.lose_rows(node);
  for (Group* const group : groups_) group->lose_rows(node);
}

Outcome Lanes::blocked_on_queues(const Query& query) noexcept {
  for (auto& [node, lanes] : lanes_) {
    for (Lane& lane : lanes) {
      for (const QueuedFrame* frame = lane.queue_.first(); frame != nullptr;
           frame = frame->next.get()) {
        if (frame->to->stage.shuffle.query().get() == &query) return lane.blocked(*frame->to);
      }
    }
  }
  return Outcome::would_wait;
}

}  // namespace faro::shuffle
