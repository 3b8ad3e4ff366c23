// NodeReaders: for which streams of the node's end something lies there for each worker of the node, and who is woken for it.
//
// What is for one worker wakes that worker. What any of several may take (Delivery::node) wakes one that sleeps; it may sleep for
// something else, or there may be more than it takes: then it wakes the next as it looks.
//
// Threads: whoever has the right of the node's end, except where said.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/fixed_array.h"
#include "session/membership.h"
#include "shuffle/receive/node_stream.h"

namespace faro::shuffle {

class NodeReaders {
 public:
  /// `membership` outlives it.
  explicit NodeReaders(session::Membership& membership);

  uint32_t worker_count() const noexcept { return static_cast<uint32_t>(waiting_.size()); }
  /// A worker's readers with a frame that they have not passed; null: none.
  NodeReader* first(uint32_t worker) noexcept { return waiting_[worker].first; }
  /// The reader is at that frame, which may be its first; null: it has passed all.
  void stand_at(NodeReader& reader, NodeFrame* frame) noexcept;
  /// Nothing more is for the readers of a stream.
  void forget(NodeStream& stream) noexcept;

  /// A worker is about to look. Threads: the worker.
  void want(uint32_t worker) noexcept {
    waiting_[worker].wants.store(true, std::memory_order_seq_cst);
  }
  /// It does.
  void looks(uint32_t worker) noexcept {
    waiting_[worker].wants.store(false, std::memory_order_relaxed);
  }
  /// There may be something for any worker.
  void note_everybody() noexcept {
    for (uint32_t worker = 0; worker < worker_count(); ++worker) note(worker);
  }
  /// Somebody may have wanted to look and could not.
  void note_who_could_not_look() noexcept;

  /// There is something for that worker.
  void note(uint32_t worker) noexcept;
  /// There is a frame that any reader of the stream may take.
  void note(NodeStream& stream) noexcept;
  /// Wakes for all that was noted.
  void wake() noexcept;
  /// Wakes one of the readers that sleep, if there is a frame that any of them may take.
  void wake_one(NodeStream& stream) noexcept;

 private:
  struct Waiting {
    NodeReader* first = nullptr;
    NodeReader* last = nullptr;
    bool is_noted = false;           // to be woken
    std::atomic<bool> wants{false};  // it has looked in vain, or is about to look
  };

  void list(NodeReader& reader) noexcept;
  void unlist(NodeReader& reader) noexcept;
  void count_streams(uint32_t worker, int more) noexcept;

  session::Membership& membership_;
  base::FixedArray<Waiting> waiting_;     // by worker
  std::vector<uint32_t> to_wake_;         // workers
  std::vector<NodeStream*> to_wake_one_;  // of their readers
};

}  // namespace faro::shuffle
