// Targets: all that calls of a sender name by a number, and the receivers behind them.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "faro/detail/scatter.h"
#include "faro/outcome.h"
#include "shuffle/operation/shuffle_context.h"
#include "shuffle/send/group.h"
#include "shuffle/send/group_blocks.h"
#include "shuffle/send/lane.h"
#include "shuffle/send/lanes.h"
#include "shuffle/stage/target.h"

namespace faro::shuffle {

/// Without groups each receiver is a target; with Delivery::replicate all of them together are one. Threads: the worker.
class Targets {
 public:
  /// `blocks`: of the groups. Throws: std::bad_alloc.
  Targets(ShuffleContext& shuffle, Lanes& lanes, SentStage& stage, GroupBlocks blocks);
  Targets(const Targets&) = delete;
  Targets& operator=(const Targets&) = delete;

  uint32_t count() const noexcept { return static_cast<uint32_t>(targets_.size()); }
  Target& operator[](uint32_t target) noexcept { return targets_[target]; }
  /// What errors call one of them.
  const char* noun() const noexcept { return has_groups_ ? "group" : "receiver"; }
  /// Where the inlined paths write, by target, and how many rows with a length each they have written.
  detail::FrameCursor* cursors() noexcept { return cursors_.data(); }
  uint32_t* frame_rows() noexcept { return frame_rows_.data(); }

  std::span<Destination> receivers() noexcept { return receivers_; }
  std::span<const Destination> receivers() const noexcept { return receivers_; }
  std::deque<Group>& groups() noexcept { return groups_; }

  /// Calls each(target), first for those named that are groups, or first for those that are not. Answers what `each` does, if
  /// that is not done.
  template <typename Each>
  Outcome for_each(std::span<const uint32_t> named, bool groups_first, const Each& each) {
    if (groups_.empty()) [[likely]] {
      for (const uint32_t target : named) {
        if (const Outcome outcome = each(targets_[target]); outcome != Outcome::done)
          return outcome;
      }
      return Outcome::done;
    }
    for (const bool groups : {groups_first, !groups_first}) {
      for (const uint32_t target : named) {
        if ((targets_[target].group() != nullptr) != groups) continue;
        if (const Outcome outcome = each(targets_[target]); outcome != Outcome::done)
          return outcome;
      }
    }
    return Outcome::done;
  }
  /// Who gets a row for those named, each receiver as often as it is a member.
  std::vector<Destination*> members_of(std::span<const uint32_t> named);

  /// Sends all blocks, behind which FINISH comes. A member for which there is room does not wait for the others: would_wait
  /// says that some have none.
  Outcome send_blocks();

  /// A receiver needs no more rows.
  void stop(Destination& receiver) noexcept;
  bool any_stopped() const noexcept { return stopped_count_ > 0; }
  bool all_stopped() const noexcept { return stopped_count_ == targets_.size(); }
  /// Drops what lies in open frames and in blocks, and gives the blocks back.
  void abandon() noexcept;

 private:
  void add_groups(const std::vector<std::vector<uint32_t>>& groups,
                  const std::vector<bool>& is_receiver, GroupBlocks blocks);

  Lanes& lanes_;
  SentStage& stage_;
  const bool has_groups_;                     // the engine's
  std::vector<detail::FrameCursor> cursors_;  // by target; then those of receivers that are none
  std::vector<uint32_t> frame_rows_;          // in the same order
  std::vector<Destination> receivers_;
  std::deque<Group> groups_;  // that have a block
  std::vector<Target> targets_;
  size_t stopped_count_ = 0;
};

}  // namespace faro::shuffle
