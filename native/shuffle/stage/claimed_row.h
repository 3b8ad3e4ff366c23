// ClaimedRow: the row that the engine writes in place before it is sent, in the open frame of its receiver or in memory of its own.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "faro/outcome.h"
#include "faro/status.h"
#include "shuffle/send/lane.h"
#include "shuffle/send/lanes.h"
#include "shuffle/stage/target.h"
#include "shuffle/stage/wait_loop.h"

namespace faro::shuffle {

/// Each shuffle has one; a worker writes one row in place at a time (Lanes::has_row_claim).
///
/// Threads: the worker.
class ClaimedRow {
 public:
  ClaimedRow(WaitLoop& wait_loop, Lanes& lanes) : wait_loop_(wait_loop), lanes_(lanes) {}
  ClaimedRow(const ClaimedRow&) = delete;
  ClaimedRow& operator=(const ClaimedRow&) = delete;

  /// Claims a row of up to `bytes` bytes: a place in the open frame of `to`; or apart, if the row may be larger than a frame, or
  /// its receiver has stopped and it will be dropped. There is none yet.
  Outcome claim_in_frame(Target& to, size_t bytes, std::span<std::byte>& data);
  Outcome claim_apart(Target& to, size_t bytes, std::span<std::byte>& data);
  /// Whose it is; null: there is none.
  const Target* to() const noexcept { return to_; }
  bool is_of(const Destination& receiver) const noexcept {
    return to_ != nullptr && to_->group() == nullptr && to_->members().front() == &receiver;
  }
  bool is_of(const Group& group) const noexcept { return to_ != nullptr && to_->group() == &group; }
  bool is_apart() const noexcept { return !apart_.empty(); }

  /// Ends the claim of the row, whose first `bytes` bytes are sent, or dropped if its receiver has stopped.
  Status commit(size_t bytes);
  /// Ends the claim, if there is one: there was no row.
  void abort() noexcept;

 private:
  Outcome begin(Target& to) noexcept;
  Target& end() noexcept;
  Outcome make_apart(Destination& to, size_t bytes);
  Status commit_apart(size_t bytes);
  Status send_apart(Destination& to, std::unique_ptr<QueuedFrame> row, size_t bytes);

  WaitLoop& wait_loop_;
  Lanes& lanes_;
  Target* to_ = nullptr;
  // The row, if it lies in no frame, once for each member: the engine writes the first.
  std::vector<std::unique_ptr<QueuedFrame>> apart_;
};

}  // namespace faro::shuffle
