// SendQueue: the places of a send queue, and which work requests have to be signalled.
//
// Work requests are numbered 0, 1, 2 …; a reliable connection completes them in order, so that a
// completion covers all that were posted before it. A place is free again when a completion covers
// it. At least one of `depth / 2` requests in a row is signalled, and no chain is longer than
// `depth / 4`: so a poster that finds no place for a chain always has a completion to come.
//
// Memory orders: an entry is written before `announce` (release) and read after `complete` has seen
// that (acquire); it is written again only when `has_room` has seen completed_ pass it.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "wire/frame.h"

namespace faro::transport::verbs {

/// Threads: "poster" is the holder of the right to post, "poller" the holder of the right to poll
/// (verbs_path.h).
class SendQueue {
 public:
  static constexpr uint32_t kLeastDepth = 16;
  static constexpr uint32_t kNoRing = ~uint32_t{0};
  static constexpr wire::Position kNothing = 0;  // no end: frees nothing

  explicit SendQueue(uint32_t depth) : entries_(depth) {}

  uint32_t depth() const noexcept { return static_cast<uint32_t>(entries_.size()); }
  uint32_t chain_limit() const noexcept { return depth() / 4; }

  /// Room for a whole chain. Threads: any; exact for the poster, and for the thread that has just given
  /// back the right to post. All loads are seq_cst: they are part of the argument in verbs_path.h.
  bool has_room() const noexcept {
    return depth() - (announced_.load(std::memory_order_seq_cst) -
                      completed_.load(std::memory_order_seq_cst)) >=
           chain_limit();
  }

  /// Takes a place; returns the request's number. When it has completed, everything before `end` (or
  /// kNothing) is out of `ring` (or kNoRing). Threads: poster.
  uint64_t add(uint32_t ring, wire::Position end) noexcept {
    const uint64_t number = announced_.load(std::memory_order_relaxed) + added_++;
    entries_[number % depth()] = {ring, end};
    return number;
  }

  /// The place, 0 … depth - 1, that the next request takes. Threads: poster.
  uint32_t next_place() const noexcept {
    return static_cast<uint32_t>((announced_.load(std::memory_order_relaxed) + added_) % depth());
  }

  /// Whether the last request added has to be signalled. Threads: poster.
  bool signal_due() const noexcept { return unsignalled_ + added_ >= depth() / 4; }

  /// What was added is about to be posted, the last of it signalled or not. Threads: poster.
  void announce(bool signalled) noexcept {
    unsignalled_ = signalled ? 0 : unsignalled_ + added_;
    announced_.store(announced_.load(std::memory_order_relaxed) + added_,
                     std::memory_order_seq_cst);
    added_ = 0;
  }

  /// Request `number` has completed: calls visit(ring, end) for each that it covers and frees their
  /// places. False if there is no such request under way. Threads: poller.
  template <typename Visit>
  bool complete(uint64_t number, Visit&& visit) noexcept {
    const uint64_t first = completed_.load(std::memory_order_relaxed);
    if (number < first || number >= announced_.load(std::memory_order_seq_cst)) return false;
    for (uint64_t n = first; n <= number; ++n) {
      const Entry& entry = entries_[n % depth()];
      if (entry.end != kNothing) visit(entry.ring, entry.end);
    }
    completed_.store(number + 1, std::memory_order_seq_cst);
    return true;
  }

  /// All is as if nothing had ever been posted: another queue pair begins. Threads: poster and
  /// poller in one.
  void restart() noexcept {
    added_ = unsignalled_ = 0;
    announced_.store(0, std::memory_order_seq_cst);
    completed_.store(0, std::memory_order_seq_cst);
  }

  /// Requests that have completed: all up to this number. Threads: any.
  uint64_t completed() const noexcept { return completed_.load(std::memory_order_relaxed); }
  /// The ring that a request under way writes to; kNoRing if to none. Threads: poller.
  uint32_t ring_of(uint64_t number) const noexcept {
    if (number < completed_.load(std::memory_order_relaxed) ||
        number >= announced_.load(std::memory_order_seq_cst))
      return kNoRing;
    return entries_[number % depth()].ring;
  }

 private:
  struct Entry {
    uint32_t ring = kNoRing;
    wire::Position end = 0;
  };

  std::vector<Entry> entries_;

  // The poster's.
  alignas(64) std::atomic<uint64_t> announced_{0};
  uint32_t added_ = 0;        // not yet announced
  uint32_t unsignalled_ = 0;  // announced since the last that was signalled

  // The poller's.
  alignas(64) std::atomic<uint64_t> completed_{0};
};

}  // namespace faro::transport::verbs
