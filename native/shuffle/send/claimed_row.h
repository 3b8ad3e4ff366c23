// ClaimedRow: a row that the engine writes in place before it is sent; what is behind faro::RowClaim.
#pragma once

#include <memory>
#include <span>

#include "faro/outcome.h"
#include "faro/status.h"
#include "shuffle/operation/shuffle_context.h"
#include "shuffle/send/out_ring.h"
#include "shuffle/send/send_side.h"
#include "shuffle/send/stream_writer.h"

namespace faro::shuffle {

/// A shuffle has one. The row lies in the open frame. It lies apart, in overflow memory, if it may be larger than a
/// frame or if its receiver has stopped, so that the row will be dropped.
///
/// Threads: those of the worker.
class ClaimedRow {
 public:
  ClaimedRow(ShuffleContext& shuffle, SendSide& side, StreamWriter& writer)
      : shuffle_(shuffle), side_(side), writer_(writer) {}

  /// Claims space for a row of at most `bytes` bytes. done: the engine writes to `data` until commit or abort.
  Outcome claim(OutStream& stream, size_t bytes, std::span<std::byte>& data);
  bool is_open() const noexcept { return stream_ != nullptr; }
  bool is_open_in(const OutStream& stream) const noexcept {
    return stream_ == &stream && !is_apart();
  }
  bool is_apart() const noexcept { return apart_ != nullptr; }
  bool is_for(const OutStream& stream) const noexcept { return stream_ == &stream; }

  /// Sends the first `bytes` bytes of the row. Never waits.
  Status commit(size_t bytes);
  void abort() noexcept;

 private:
  Outcome claim_apart(OutStream& stream, size_t bytes, std::span<std::byte>& data);
  Status commit_apart(OutStream& stream, size_t bytes);
  OutStream& end() noexcept;

  ShuffleContext& shuffle_;
  SendSide& side_;
  StreamWriter& writer_;
  OutStream* stream_ = nullptr;  // null: none is open
  std::unique_ptr<QueuedFrame> apart_;
};

}  // namespace faro::shuffle
