// MpscCommandQueue: how other threads reach the network thread.
//
// Commands lie in a bounded lock-free queue. When that is full (a thread sends control messages
// faster than the network thread takes them) they go to a list under a mutex, so that `push` never
// waits for the consumer and loses nothing.
//
// Order: the commands of one thread are taken in the order in which it pushed them. While
// `overflowed_` is set every push goes to the list; `take` empties the ring, appends the list and
// clears the flag under the mutex. A thread whose command is in the list therefore cannot put a
// later one into the ring before the list was taken.
//
// Sleeping: native/DESIGN.md#memory-orders defines the steps of the consumer (N1 to N3) and of a producer (P1 to P3),
// and says why no command waits for a sleeping consumer. All are seq_cst. This file has P1 and N2, the reactor the
// others.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include <atomic_queue/atomic_queue.h>

namespace faro::links {

/// Threads: any number push, one takes. Blocks: push only for another push, and only when overflowed.
class MpscCommandQueue {
 public:
  using Command = std::function<void()>;

  MpscCommandQueue() : ring_(kCapacity) {}
  MpscCommandQueue(const MpscCommandQueue&) = delete;
  MpscCommandQueue& operator=(const MpscCommandQueue&) = delete;

  void push(Command command) {
    // Acquire: its partner is the release in take. It is only a hint; the mutex orders the list.
    // try_push leaves the command alone when it fails.
    if (overflowed_.load(std::memory_order_acquire) || ring_.was_size() >= kCapacity / 2 ||
        !ring_.try_push(std::move(command))) {
      const std::lock_guard lock(mutex_);
      overflow_.push_back(std::move(command));
      overflowed_.store(true, std::memory_order_release);
    }
    pushed_.fetch_add(1, std::memory_order_seq_cst);  // P1
  }

  /// Appends what has been pushed to `commands`. If memory runs out, the rest is taken the next time. Threads: the
  /// consumer.
  void take(std::vector<Command>& commands) {
    const size_t before = commands.size();
    if (overflowed_.load(std::memory_order_acquire)) {
      const std::lock_guard lock(mutex_);
      commands.reserve(commands.size() + kCapacity + overflow_.size());
      take_ring(commands);
      for (Command& command : overflow_) commands.push_back(std::move(command));
      overflow_.clear();
      overflowed_.store(false, std::memory_order_release);
    } else {
      commands.reserve(std::max(commands.capacity(), commands.size() + ring_.was_size() + kSlack));
      take_ring(commands);
    }
    taken_ += commands.size() - before;
  }

  /// N2. A command that was taken before its producer counted it makes this true too early; that
  /// producer then sees `sleeping` and wakes. Threads: the consumer.
  bool empty() const {
    return static_cast<int64_t>(pushed_.load(std::memory_order_seq_cst) - taken_) <= 0;
  }

 private:
  // Room for many bursts of cancels to a hundred peers. Only half of it is used: in a full ring a producer could be one
  // lap ahead of another one that was preempted between taking its place and filling it. The first would then fill that
  // place, and the order would be lost. There are never as many producers at once as the other half has places.
  static constexpr unsigned kCapacity = 2048;
  // Pushed while the others are counted.
  static constexpr size_t kSlack = 16;

  // Bounded by the room in `commands`: producers may be adding all the time, and there must be room for every command
  // that has left the ring.
  void take_ring(std::vector<Command>& commands) {
    Command command;
    for (unsigned i = 0; i < kCapacity && commands.size() < commands.capacity(); ++i) {
      if (!ring_.try_pop(command)) return;
      commands.push_back(std::move(command));
    }
  }

  // The variant whose slots each have a state. The one for atomic elements pops without acquire, so the consumer could
  // see what a popped pointer points to half written.
  atomic_queue::AtomicQueueB2<Command> ring_;
  std::mutex mutex_;
  std::vector<Command> overflow_;  // guarded by mutex_
  std::atomic<bool> overflowed_{false};
  alignas(64) std::atomic<uint64_t> pushed_{0};
  uint64_t taken_ = 0;  // the consumer's
};

}  // namespace faro::links
