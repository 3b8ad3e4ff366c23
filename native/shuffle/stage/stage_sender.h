// StageSender: the sending side of an open shuffle, what is behind faro::ShuffleSender, RowSender and RowClaim.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "faro/outcome.h"
#include "faro/shuffle.h"
#include "shuffle/operation/shuffle_context.h"
#include "shuffle/send/group_blocks.h"
#include "shuffle/send/lane.h"
#include "shuffle/send/lanes.h"
#include "shuffle/send/row_pieces.h"
#include "shuffle/stage/claimed_row.h"
#include "shuffle/stage/large_row.h"
#include "shuffle/stage/many_rows.h"
#include "shuffle/stage/targets.h"
#include "shuffle/stage/wait_loop.h"

namespace faro::shuffle {

/// All answer as faro::ShuffleSender documents. What calls name by `receiver` is a target: a receiver or, if the shuffle was
/// opened with groups, a group. Threads: those of the worker.
class StageSender {
 public:
  /// `slot`: of the shuffle at its worker. `blocks`: of its groups.
  StageSender(ShuffleContext& shuffle, WaitLoop& wait_loop, Lanes& lanes, RowFormat format,
              uint16_t slot, GroupBlocks blocks);
  ~StageSender();
  StageSender(const StageSender&) = delete;
  StageSender& operator=(const StageSender&) = delete;

  Outcome send(uint32_t receiver, std::span<const std::byte> row, Wait wait,
               WhenFull when_full = WhenFull::overflow) noexcept;
  Outcome multicast(std::span<const uint32_t> receivers, const RowPieces& row, Wait wait,
                    WhenFull when_full = WhenFull::overflow) noexcept;
  Outcome broadcast(std::span<const std::byte> row, Wait wait,
                    WhenFull when_full = WhenFull::overflow);
  /// Writes rows of a fixed width, those first ones that fit into the open frames of all receivers that
  /// have not stopped, if some have. Returns how many.
  size_t broadcast_past_stopped(std::span<const std::byte> rows) noexcept;
  /// The calls that send many rows of a type that is known at run time.
  ManyRows& many() noexcept { return many_; }
  /// How every call that sends begins. Answers done or failed.
  Outcome enter();
  /// Flushes all rings of the worker.
  Outcome flush() noexcept;
  Outcome finish(Wait wait);

  /// done: a claim refers to the shuffle until claim_gone.
  Outcome claim(uint32_t receiver, size_t bytes, std::span<std::byte>& data, Wait wait);
  /// Makes room for a row in its receiver's open frame, which the caller writes at the cursor. A row that goes into no frame is
  /// claimed, as by `claim`; `data` is empty where nothing is.
  Outcome make_room(uint32_t receiver, size_t bytes, std::span<std::byte>& data, Wait wait);
  /// `data`: as it was claimed.
  Status commit_claim(std::span<std::byte> data, size_t bytes);
  void abort_claim() noexcept;
  /// The RowClaim is done with: aborts what was not committed. May destroy this object.
  void claim_gone() noexcept;
  /// Whether this is a forked child, where nothing of it may be touched.
  bool forked() const noexcept { return shuffle_.worker().node.forked(); }

  /// What the rows are that this worker sends from its next OPEN on. Errors: as ShuffleContext::name_format.
  Status send_as(std::string_view format);

  Targets& targets() noexcept { return targets_; }
  /// The loops for rows of its fixed width (setting kernel.scatter).
  detail::SendKernels kernels() const;

  /// Does what ShuffleSender::status says.
  const Status& status() const noexcept { return side_.status(); }
  uint16_t slot() const noexcept { return stage_.slot; }
  /// `finish` was called.
  bool is_finishing() const noexcept { return finish_called_; }
  /// FINISH to everybody has left the queues.
  bool is_done() const noexcept { return finish_done_; }
  bool has_queued() const noexcept;
  /// Receivers that need no more rows.
  void receivers_stopped(std::span<const uint32_t> workers);
  /// The query has failed.
  void drop_rows();
  /// Drops what lies in open frames and in blocks, and gives the blocks back.
  void abandon_frames() noexcept;

 private:
  Outcome check_row(std::string_view what, size_t bytes);
  Outcome check_receivers(std::span<const uint32_t> receivers);
  Outcome fail_no_receiver(uint32_t receiver);
  Outcome attempt_multicast(std::span<const uint32_t> receivers, const RowPieces& row,
                            WhenFull when_full, LargeRow* to_cut);
  Outcome prepare_large(Target& target, bool is_cut);
  Outcome multicast_copies(std::span<const uint32_t> receivers, const RowPieces& row,
                           LargeRow* to_cut, bool are_large);
  Outcome attempt_claim(uint32_t receiver, size_t bytes, std::span<std::byte>& data, bool in_frame);
  Outcome attempt_finish();
  void stop(Destination& to);
  Outcome done_or_stopped() const noexcept {
    return targets_.all_stopped() ? Outcome::stopped : Outcome::done;
  }

  ShuffleContext& shuffle_;
  ShuffleSide side_;
  WaitLoop& wait_loop_;
  Lanes& lanes_;
  SentStage stage_;
  Targets targets_;
  ClaimedRow claimed_;
  ManyRows many_;
  const bool share_lanes_;          // some receivers do
  std::vector<uint32_t> everyone_;  // all targets
  std::vector<uint64_t> named_;     // by target: the number of the last multicast that named it
  uint64_t multicasts_ = 0;
  bool finish_called_ = false;
  bool finish_done_ = false;
};

}  // namespace faro::shuffle
