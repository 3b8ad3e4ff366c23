// How rows of the sockets baseline reach a worker of the same process: blocks of frames through a
// bounded queue in shared memory of the process, and a bell that wakes a worker asleep in epoll.
//
// Who writes what: the sender fills a block while it owns it; pushing it (release) hands it to the
// receiver, popping it (acquire) takes it over. Empty blocks come back the same way.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "lab/bench/sockets_output.h"

namespace faro::bench {

/// A bounded queue of pointers for one pushing and one popping thread.
///
/// Blocks: never.
template <class T, uint32_t kCapacity>
class SpscPointerQueue {
  static_assert((kCapacity & (kCapacity - 1)) == 0);

 public:
  bool try_push(T* item) noexcept {
    const uint32_t tail = tail_.load(std::memory_order_relaxed);  // own
    // Pairs with the store in try_pop: the cell has been read.
    if (tail - head_.load(std::memory_order_acquire) == kCapacity) return false;
    cells_[tail % kCapacity] = item;
    // Publishes the cell and the block. seq_cst (not just release): LocalBell::ring must not look
    // for a sleeper before a sleeper could see this.
    tail_.store(tail + 1, std::memory_order_seq_cst);
    return true;
  }
  /// Null if empty.
  T* try_pop() noexcept {
    const uint32_t head = head_.load(std::memory_order_relaxed);  // own
    // Pairs with the store in try_push; seq_cst for the look after LocalBell::arm.
    if (head == tail_.load(std::memory_order_seq_cst)) return nullptr;
    T* item = cells_[head % kCapacity];
    head_.store(head + 1, std::memory_order_seq_cst);  // as tail_: the sender may sleep for space
    return item;
  }

 private:
  std::array<T*, kCapacity> cells_{};
  alignas(64) std::atomic<uint32_t> head_{0};  // written by the popping thread
  alignas(64) std::atomic<uint32_t> tail_{0};  // written by the pushing thread
};

/// Frames on their way to another worker. Whoever holds the pointer owns the block.
struct LocalBlock {
  explicit LocalBlock(uint32_t capacity_bytes) : memory(new char[capacity_bytes]) {}
  std::unique_ptr<char[]> memory;
  uint32_t used_bytes = 0;
};

/// One sending to one receiving worker of the same process. Four blocks under way, so that a lane
/// holds as much as the 64 KiB buffers of a socket.
///
/// Owns: the blocks inside its queues.
class LocalLane {
 public:
  LocalLane() = default;
  ~LocalLane() {
    while (LocalBlock* block = full.try_pop()) delete block;
    while (LocalBlock* block = empty.try_pop()) delete block;
  }

  /// A block to fill: one that came back, or a new one. The sender.
  std::unique_ptr<LocalBlock> take_empty(uint32_t capacity_bytes) {
    LocalBlock* block = empty.try_pop();
    if (block == nullptr) block = new LocalBlock(capacity_bytes);
    block->used_bytes = 0;
    return std::unique_ptr<LocalBlock>(block);
  }
  /// Gives a block back; the receiver. What finds no room is freed.
  void give_back(std::unique_ptr<LocalBlock> block) noexcept {
    if (empty.try_push(block.get())) block.release();
  }

  SpscPointerQueue<LocalBlock, 4> full;
  SpscPointerQueue<LocalBlock, 8> empty;
};

/// Wakes one worker. A needless ring is one load.
///
/// Threads: the worker arms; any thread rings.
class alignas(64) LocalBell {
 public:
  LocalBell() : event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

  /// Watch it edge-triggered while asleep: then it need never be read.
  int fd() const noexcept { return event_.get(); }

  /// From here on rings reach fd(). After arming, look once more before sleeping.
  void arm() noexcept { armed_.store(true, std::memory_order_seq_cst); }
  /// After waking, or instead of sleeping. Relaxed: a late ring costs one needless wake.
  void disarm() noexcept { armed_.store(false, std::memory_order_relaxed); }
  /// After what the worker should see has been stored with seq_cst.
  void ring() noexcept {
    if (armed_.load(std::memory_order_seq_cst) &&
        armed_.exchange(false, std::memory_order_seq_cst)) {
      const uint64_t one = 1;
      [[maybe_unused]] const ssize_t put = write(event_.get(), &one, sizeof(one));
    }
  }

 private:
  base::UniqueFd event_;
  std::atomic<bool> armed_{false};
};

/// What the workers of one process share; they are known by their numbers over all processes. Made before their threads.
class SocketsProcess {
 public:
  SocketsProcess(uint32_t first_worker, uint32_t workers)
      : first_(first_worker), lanes_(size_t{workers} * workers), bells_(workers) {}

  /// That of a worker to itself stays unused.
  LocalLane& lane(uint32_t from, uint32_t to) noexcept {
    return lanes_[(from - first_) * bells_.size() + (to - first_)];
  }
  LocalBell& bell(uint32_t worker) noexcept { return bells_[worker - first_]; }

 private:
  const uint32_t first_;
  std::vector<LocalLane> lanes_;
  std::vector<LocalBell> bells_;
};

/// The way to another worker of the process. Threads: the sender's.
class LocalTarget {
 public:
  LocalTarget(LocalLane& lane, LocalBell& receiver, uint32_t block_bytes, uint32_t frame_bytes)
      : lane_(lane), receiver_(receiver), block_bytes_(block_bytes), frame_bytes_(frame_bytes) {}

  /// Frames go into an empty block from now on.
  void open(Output& output) {
    block_ = lane_.take_empty(block_bytes_);
    output.set_memory(block_->memory.get(), block_bytes_, frame_bytes_);
  }
  /// Hands the open block over, if there is something in it; false if the lane is full.
  bool flush(Output& output) {
    if (output.is_empty()) return true;
    block_->used_bytes = static_cast<uint32_t>(output.waiting_bytes());
    if (!lane_.full.try_push(block_.get())) return false;
    block_.release();
    receiver_.ring();
    open(output);
    return true;
  }

 private:
  LocalLane& lane_;
  LocalBell& receiver_;
  const uint32_t block_bytes_;
  const uint32_t frame_bytes_;
  std::unique_ptr<LocalBlock> block_;
};

/// What comes from another worker of the process. Threads: the receiver's.
class LocalSource {
 public:
  LocalSource(LocalLane& lane, LocalBell& sender) : lane_(lane), sender_(sender) {}
  LocalSource(LocalSource&&) = default;  // and no copy, which std::deque would only seem to have

  /// Whether there is a block that is not handled; takes one from the lane.
  bool has_rows() { return !waiting_.empty() || take(); }
  /// The bytes of its first block: [begin, end).
  const char* begin() const noexcept { return waiting_.front()->memory.get() + begin_; }
  const char* end() const noexcept {
    return waiting_.front()->memory.get() + waiting_.front()->used_bytes;
  }
  /// Handled up to there; true if that is the end of the block, which then goes back.
  bool handled(const char* up_to) {
    begin_ = static_cast<size_t>(up_to - waiting_.front()->memory.get());
    if (begin_ < waiting_.front()->used_bytes) return false;
    lane_.give_back(std::move(waiting_.front()));
    waiting_.pop_front();
    begin_ = 0;
    return true;
  }
  /// Takes all that the lane holds; true if that was something.
  bool take_all() {
    bool moved = false;
    while (take()) moved = true;
    return moved;
  }

 private:
  bool take() {
    LocalBlock* const block = lane_.full.try_pop();
    if (block == nullptr) return false;
    sender_.ring();
    waiting_.emplace_back(block);
    return true;
  }

  LocalLane& lane_;
  LocalBell& sender_;
  std::deque<std::unique_ptr<LocalBlock>> waiting_;  // taken from the lane
  size_t begin_ = 0;                                 // of the first one
};

}  // namespace faro::bench
