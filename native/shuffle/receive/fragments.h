// Fragments: puts rows together that are larger than a frame (native/DESIGN.md#inv-8).
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>

#include "faro/status.h"
#include "shuffle/operation/operation.h"
#include "shuffle/operation/worker_context.h"
#include "shuffle/receive/inbox.h"
#include "shuffle/receive/received_frames.h"

namespace faro::shuffle {

/// The engine's memory for rows that are put together (ShuffleReceiver::receive_into).
class RowMemory {
 public:
  using Allocate = std::function<std::byte*(size_t bytes, size_t& room)>;
  static constexpr size_t kAlignment = 64;

  explicit RowMemory(const Allocate& allocate) : allocate_(allocate) {
    if (allocate == nullptr) refusal_ = Status(Code::invalid_argument, "allocate is null");
  }

  /// Memory for a row; null, and `refusal` says why, if what the engine gives is of no use.
  std::byte* take(uint64_t bytes);
  /// Ok: take has refused nothing.
  const Status& refusal() const noexcept { return refusal_; }
  /// Throws what the engine has thrown, if it has.
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  const Allocate& allocate_;
  Status refusal_;
  std::exception_ptr thrown_;
};

/// Threads: the worker.
class Fragments {
 public:
  Fragments(const WorkerContext& worker, Operation& operation, ReceivedFrames& frames)
      : worker_(worker), operation_(operation), frames_(frames) {}

  /// Takes the fragments that a queue has. Answers the finished row as a frame of its own; null if the next one has not come, or
  /// has no room, or the query has failed. `into`: where the row is to be; null: in overflow.
  FrameNode* assemble(Inbox& inbox, Inbox::SenderQueue& queue, RowMemory* into);

 private:
  bool continues_row(const Inbox& inbox, const Inbox::SenderQueue& queue,
                     const FrameNode& node) const;
  bool make_room(Inbox& inbox, Inbox::SenderQueue& queue, const FrameNode& node);
  bool move_into(RowMemory& memory, Inbox::Assembly& assembly);
  void append_first(Inbox& inbox, Inbox::SenderQueue& queue);
  static FrameNode* take_whole(Inbox& inbox, Inbox::SenderQueue& queue);
  FrameNode* finish_row(Inbox::SenderQueue& queue, uint32_t sender);

  const WorkerContext& worker_;
  Operation& operation_;
  ReceivedFrames& frames_;
};

}  // namespace faro::shuffle
