// Target: what a call of a sender names by a number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "faro/outcome.h"
#include "shuffle/send/group.h"
#include "shuffle/send/lane.h"
#include "shuffle/send/row_pieces.h"

namespace faro::shuffle {

/// A receiver or, of a shuffle with groups, a group of several. Threads: the worker.
class Target {
 public:
  explicit Target(Destination& receiver) noexcept : receiver_(&receiver) {}
  explicit Target(Group& group) noexcept : group_(&group) {}

  /// Null: it is a receiver.
  Group* group() const noexcept { return group_; }
  /// Those that need rows, and also a receiver that has stopped.
  std::span<Destination* const> members() const noexcept {
    return group_ != nullptr ? group_->members() : std::span<Destination* const>(&receiver_, 1);
  }
  /// A member, whether or not it has stopped.
  Destination* any_member() const noexcept {
    return group_ != nullptr ? group_->any_member() : receiver_;
  }
  /// No member needs rows.
  bool stopped() const noexcept {
    return group_ != nullptr ? group_->members().empty() : receiver_->stopped;
  }
  /// How many members do not get a row that is sent: it counts as dropped for them.
  uint32_t stopped_members() const noexcept {
    return group_ != nullptr ? group_->stopped_members() : receiver_->stopped ? 1 : 0;
  }

  SentStage& stage() const noexcept {
    return group_ != nullptr ? group_->stage() : receiver_->stage;
  }

  /// They do what those of Lane do.
  Outcome make_room(uint32_t bytes, WhenFull when_full) {
    return group_ != nullptr ? group_->make_room(bytes, when_full)
                             : receiver_->lane.make_room(*receiver_, bytes, when_full);
  }
  void write(const RowPieces& row) {
    group_ != nullptr ? group_->write(row) : receiver_->lane.write(*receiver_, row);
  }
  std::span<std::byte> claim_row(size_t bytes) noexcept {
    return group_ != nullptr ? group_->claim_row(bytes)
                             : receiver_->lane.claim_row(*receiver_, bytes);
  }
  void commit_row(size_t bytes) {
    group_ != nullptr ? group_->commit_row(bytes) : receiver_->lane.commit_row(*receiver_, bytes);
  }
  void unclaim_row() noexcept {
    group_ != nullptr ? group_->unclaim_row() : receiver_->lane.unclaim_row(*receiver_);
  }
  /// Drops the rows in its open frame.
  void drop_open() noexcept {
    group_ != nullptr ? group_->drop() : (void)receiver_->lane.drop_open(*receiver_);
  }

 private:
  Destination* receiver_ = nullptr;
  Group* group_ = nullptr;
};

}  // namespace faro::shuffle
