// ClaimedRow: the row that the engine writes in place before it is sent, in the open frame of its receiver or in memory of its own.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "faro/outcome.h"
#include "faro/status.h"
#include "shuffle/send/lane.h"
#include "shuffle/send/lanes.h"
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
  Outcome claim_in_frame(Destination& to, size_t bytes, std::span<std::byte>& data);
  Outcome claim_apart(Destination& to, size_t bytes, std::span<std::byte>& data);
  /// Whose it is; null: there is none.
  const Destination* to() const noexcept { return to_; }
  bool is_apart() const noexcept { return apart_ != nullptr; }

  /// Ends the claim of the row, whose first `bytes` bytes are sent, or dropped if its receiver has stopped.
  Status commit(size_t bytes);
  /// Ends the claim, if there is one: there was no row.
  void abort() noexcept;

 private:
  Outcome begin(Destination& to) noexcept;
  Destination& end() noexcept;
  Status commit_apart(Destination& to, size_t bytes);

  WaitLoop& wait_loop_;
  Lanes& lanes_;
  Destination* to_ = nullptr;
  std::unique_ptr<QueuedFrame> apart_;  // the row, if it lies in no frame
};

}  // namespace faro::shuffle
