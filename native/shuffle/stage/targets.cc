#include "shuffle/stage/targets.h"

#include <numeric>
#include <utility>

namespace faro::shuffle {

// A receiver that is a target has the target's cursor. Of the others no row is written but by blocks, and by rows that
// were claimed larger than they became.
Targets::Targets(ShuffleContext& shuffle, Lanes& lanes, SentStage& stage, GroupBlocks blocks)
    : lanes_(lanes), stage_(stage), has_groups_(!shuffle.spec().groups.empty()) {
  const ShuffleSpec& spec = shuffle.spec();
  const LogicalReceivers& receivers = shuffle.receivers();
  const uint32_t receiver_count = receivers.count();
  const std::vector<std::vector<uint32_t>>& groups = receivers.groups(spec);
  const auto group_count = static_cast<uint32_t>(groups.size());
  std::vector<uint32_t> cursor_of(receiver_count);
  std::iota(cursor_of.begin(), cursor_of.end(), group_count);
  std::vector<bool> is_receiver(group_count);
  LoneMembers alone(receiver_count);
  for (uint32_t g = 0; g < group_count; ++g) {
    is_receiver[g] = alone.is_receiver(groups[g]);
    if (is_receiver[g]) cursor_of[groups[g].front()] = g;
  }
  cursors_.resize(group_count + receiver_count);
  frame_rows_.resize(cursors_.size());
  receivers_.reserve(receiver_count);
  for (uint32_t r = 0; r < receiver_count; ++r) {
    const std::span<const uint32_t> workers = receivers.workers(r);
    receivers_.emplace_back(stage, lanes.to(workers.front(), spec.stage, spec.delivery), workers,
                            lanes.stream_to(workers.front(), stage.slot, spec.delivery),
                            shuffle.counts().sent(r), cursors_[cursor_of[r]],
                            frame_rows_[cursor_of[r]]);
  }
  targets_.reserve(group_count > 0 ? group_count : receiver_count);
  if (group_count > 0) {
    add_groups(groups, is_receiver, std::move(blocks));
  } else {
    for (Destination& receiver : receivers_) targets_.emplace_back(receiver);
  }
}

void Targets::add_groups(const std::vector<std::vector<uint32_t>>& groups,
                         const std::vector<bool>& is_receiver, GroupBlocks blocks) {
  for (size_t g = 0; g < groups.size(); ++g) {
    if (is_receiver[g]) {
      targets_.emplace_back(receivers_[groups[g].front()]);
      continue;
    }
    std::vector<Destination*> members;
    members.reserve(groups[g].size());
    for (const uint32_t member : groups[g]) members.push_back(&receivers_[member]);
    targets_.emplace_back(groups_.emplace_back(lanes_, stage_, std::move(members), blocks.take(),
                                               cursors_[g], frame_rows_[g]));
  }
}

std::vector<Destination*> Targets::members_of(std::span<const uint32_t> named) {
  std::vector<Destination*> members;
  for (const uint32_t target : named) {
    for (Destination* const to : targets_[target].members()) {
      if (!to->stopped) members.push_back(to);
    }
  }
  return members;
}

Outcome Targets::send_blocks() {
  Outcome answer = Outcome::done;
  for (Group& group : groups_) {
    const Outcome outcome = group.send_block(WhenFull::overflow);
    if (outcome != Outcome::done && outcome != Outcome::would_wait) return outcome;
    if (outcome == Outcome::would_wait) answer = outcome;
  }
  return answer;
}

void Targets::stop(Destination& receiver) noexcept {
  receiver.stopped = true;
  for (Target& target : targets_) {
    Group* const group = target.group();
    const bool was_stopped = group != nullptr && target.stopped();
    if (group != nullptr) group->member_stopped(receiver);
    const bool is_hit = group != nullptr || target.members().front() == &receiver;
    if (is_hit && !was_stopped && target.stopped()) ++stopped_count_;
  }
}

void Targets::abandon() noexcept {
  for (Destination& to : receivers_) to.lane.drop_open(to);
  if (groups_.empty()) return;
  for (Group& group : groups_) group.abandon();
  lanes_.unlist_groups();
}

}  // namespace faro::shuffle
