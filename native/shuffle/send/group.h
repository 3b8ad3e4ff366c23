// Group: several receivers of one shuffle to which rows are sent together (ShuffleSpec::groups).
//
//   idle ──make_room──▶ open: rows go into the block ──close──▶ closed: the block is a frame, and owed to all members
//    ▲                                                            │ each has it in its ring or its queue
//    └────────────────────────────────────────────────────────────┘
//
// Rows are written once, into the block of the group, and copied once for each member, a frame at a time.
// So groups that share members do not cut each other's frames, as two shuffles on one ring do. A member without room
// keeps the block, and with it the group, but not what the other members have got.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "faro/outcome.h"
#include "shuffle/overflow/overflow.h"
#include "shuffle/send/lane.h"
#include "shuffle/send/lanes.h"
#include "shuffle/send/row_cursor.h"
#include "shuffle/send/row_pieces.h"

namespace faro::shuffle {

/// Threads: the worker. Blocks: never; a call that would wait notes what it waits for (BlockedOn).
class Group {
 public:
  /// `members`: none twice. `block`: as large as a frame of a single row. `at`, `counted`: as RowCursor has them.
  /// Throws: std::bad_alloc.
  Group(Lanes& lanes, SentStage& stage, std::vector<Destination*> members, StoredBlock block,
        detail::FrameCursor& at, uint32_t& counted);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  SentStage& stage() const noexcept { return stage_; }
  /// Those that need rows, in any order.
  std::span<Destination* const> members() const noexcept { return members_; }
  /// One of all, whether or not it has stopped.
  Destination* any_member() const noexcept { return any_member_; }
  /// How many have stopped.
  uint32_t stopped_members() const noexcept { return stopped_; }

  /// They do what those of Lane do, for all members.
  Outcome make_room(uint32_t bytes, WhenFull when_full);
  void write(const RowPieces& row);
  std::span<std::byte> claim_row(size_t bytes) noexcept { return rows_.claim(bytes); }
  void commit_row(size_t bytes);
  void unclaim_row() noexcept { rows_.unclaim(); }

  /// Sends the rows that were written: what comes next at a member comes behind them. would_wait: some member has no
  /// room for them, and no batch is held.
  Outcome send_block(WhenFull when_full);
  /// Sends the rows that were written to the members that have room now. Returns whether some are left.
  bool flush();
  /// Whether it is closed, and owed to some members.
  bool is_closed() const noexcept { return length_ != 0; }

  /// A member has stopped. What lies here for it is dropped, and counted.
  void member_stopped(Destination& member) noexcept;
  /// Drops the rows that were written.
  void drop() noexcept;
  /// Drops them, and fails their query, if some are for workers of the node, which is lost.
  void lose_rows(uint32_t node);
  /// Nothing is sent any more: gives the block back. Comes before its end, with Lanes::unlist_groups.
  void abandon() noexcept;
  bool is_abandoned() const noexcept { return begin() == nullptr; }

 private:
  friend class Lanes;

  std::byte* begin() const noexcept { return block_.memory(); }
  uint32_t written() const noexcept { return is_open_ ? rows_.payload_from(begin()) : 0; }
  void open(uint32_t bytes);
  void close();
  Outcome push(WhenFull when_full);
  void settle() noexcept;
  Outcome fail_by_claim();
  void send_if_full(uint64_t next_bytes);

  Lanes& lanes_;
  SentStage& stage_;
  std::vector<Destination*> members_;  // the first owed_ of them have not got the closed block yet
  Destination* const any_member_;
  size_t owed_ = 0;
  uint32_t stopped_ = 0;
  StoredBlock block_;
  RowCursor rows_;
  bool is_open_ = false;
  bool is_listed_ = false;  // among the groups to flush
  uint32_t length_ = 0;     // of the frame, if it is closed
  uint32_t row_count_ = 0;  // in it
};

}  // namespace faro::shuffle
