// PendingRings: a set of ring numbers that any thread adds to and one thread at a time takes from.
//
// Two levels of bits: a word per 64 rings, and a summary bit per word, so that a look costs one load per
// 4096 rings. Invariant: while a bit of a word is set, its summary bit is set, or the thread that set the
// bit is about to set it too (mark), or a taker that cleared the summary bit is about to read the word, or
// to set the summary bit again (take).
//
// Memory orders: everything here is seq_cst, because it is part of the steps W1 to W4 of
// native/DESIGN.md#memory-orders. The taker sees what a marker wrote before `mark`: the RMW of mark releases, that of
// take acquires.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <vector>

namespace faro::transport {

class PendingRings {
 public:
  explicit PendingRings(uint32_t ring_count)
      : words_((ring_count + 63) / 64), summaries_((words_.size() + 63) / 64) {}

  /// Threads: any.
  void mark(uint32_t ring) noexcept {
    words_[ring / 64].fetch_or(uint64_t{1} << (ring % 64), std::memory_order_seq_cst);
    mark_summary(ring / 64);
  }

  /// Whether there may be any: false only if every `mark` that came before has been taken. Threads: any.
  bool any() const noexcept {
    for (const auto& summary : summaries_) {
      if (summary.load(std::memory_order_seq_cst) != 0) return true;
    }
    return false;
  }

  /// Calls visit(ring) for each, and takes none out. Threads: that of take.
  template <typename Visit>
  void look(Visit&& visit) const noexcept {
    for (uint32_t w = 0; w < words_.size(); ++w) {
      for (uint64_t bits = words_[w].load(std::memory_order_seq_cst); bits != 0; bits &= bits - 1)
        visit(w * 64 + static_cast<uint32_t>(std::countr_zero(bits)));
    }
  }

  /// Takes rings out and calls visit(ring) for each, until that returns false. That ring is then not taken,
  /// and the next call starts with it, so that every ring gets its turn even if each call visits few.
  /// Threads: one at a time.
  template <typename Visit>
  void take(Visit&& visit) noexcept {
    const uint32_t first = next_ring_;
    const uint32_t first_word = first / 64;
    const uint32_t passes = static_cast<uint32_t>(summaries_.size());
    // From `first` to the end, and from the start up to `first`: its summary and its word come twice.
    for (uint32_t i = 0; i <= passes; ++i) {
      const uint32_t s = (first_word / 64 + i) % passes;
      uint64_t mask = ~uint64_t{0};
      if (i == 0) mask <<= first_word % 64;
      if (i == passes) mask = ~uint64_t{0} >> (63 - first_word % 64);
      if ((summaries_[s].load(std::memory_order_relaxed) & mask) == 0)
        continue;  // any() decides, not this
      uint64_t words = summaries_[s].fetch_and(~mask, std::memory_order_seq_cst) & mask;
      for (; words != 0; words &= words - 1) {
        const uint32_t w = s * 64 + static_cast<uint32_t>(std::countr_zero(words));
        const uint64_t wanted =
            i == 0 && w == first_word ? ~uint64_t{0} << (first % 64) : ~uint64_t{0};
        const uint64_t found = words_[w].fetch_and(~wanted, std::memory_order_seq_cst);
        if ((found & ~wanted) != 0) mark_summary(w);  // for the last pass
        for (uint64_t bits = found & wanted; bits != 0; bits &= bits - 1) {
          const uint32_t ring = w * 64 + static_cast<uint32_t>(std::countr_zero(bits));
          if (visit(ring)) continue;
          words_[w].fetch_or(bits, std::memory_order_seq_cst);
          summaries_[s].fetch_or(words, std::memory_order_seq_cst);
          next_ring_ = ring;
          return;
        }
      }
    }
  }

 private:
  void mark_summary(uint32_t word) noexcept {
    summaries_[word / 64].fetch_or(uint64_t{1} << (word % 64), std::memory_order_seq_cst);
  }

  std::vector<std::atomic<uint64_t>> words_;
  std::vector<std::atomic<uint64_t>> summaries_;
  uint32_t next_ring_ = 0;  // the taker's
};

}  // namespace faro::transport
