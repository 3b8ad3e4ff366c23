// ReadySet: which incoming rings of a worker may have something to read, without touching each ring.
//
// Rings are numbered group * 64 + bit. A group is one 64-bit word that belongs to one link, so that a
// hostile shm peer can only disturb its own. Groups of shm links lie in the link's segment (external,
// always read). All others lie in one array here, with a summary word per 64 groups and a root word per 64 of those, so that a
// look at 65 536 channels costs 16 words.
//
// The thread that moves a ring's written position sets its bit after that store. The RMW is seq_cst: it is R1 of
// native/DESIGN.md#memory-orders. Only the worker takes bits (exchanges a word with 0): it then sees the written
// position, or the bit is set again. If it leaves a ring non-empty, it visits the ring again without a bit. Words are marked from
// below and taken from above, so a mark is not lost between the two: where a bit above is set already, it is taken later.
#pragma once

#include <atomic>
#include <bit>
#include <cassert>
#include <cstdint>
#include <vector>

namespace faro::ring {

class ReadySet {
 public:
  static constexpr uint32_t kRingsPerGroup = 64;

  /// What a set with room for that many groups takes.
  static uint64_t bytes(uint32_t group_limit) {
    return sizeof(ReadySet) + group_limit * (sizeof(External) + sizeof(uint64_t)) +
           (words_for(group_limit) + words_for(words_for(group_limit))) * sizeof(uint64_t);
  }
  /// Room for that many groups, all allocated now.
  explicit ReadySet(uint32_t group_limit)
      : roots_(words_for(words_for(group_limit))),
        summaries_(words_for(group_limit)),
        words_(group_limit) {
    external_.reserve(group_limit);
  }

  /// Takes the next free group. Threads: before the worker's first look.
  uint32_t add_group() { return assert(group_count_ < words_.size()), group_count_++; }

  /// From now on a group's word is one in memory of the caller, which outlives every look until
  /// `clear_external`. Others may write it: only its first `ring_count` bits are ever visited.
  /// Threads: the worker, or before its first look.
  void set_external(uint32_t group, std::atomic<uint64_t>* word,
                    uint32_t ring_count = kRingsPerGroup) {
    assert(group < words_.size() && ring_count > 0 && ring_count <= kRingsPerGroup);
    external_.push_back({word, group, ~uint64_t{0} >> (kRingsPerGroup - ring_count)});
  }
  /// The group's word is the set's own again. Threads: as set_external.
  void clear_external(uint32_t group) {
    std::erase_if(external_, [group](const External& e) { return e.group == group; });
  }

  /// Marks a ring of an internal group. Threads: any.
  void mark(uint32_t ring) noexcept {
    const uint32_t group = ring / kRingsPerGroup;
    words_[group].fetch_or(uint64_t{1} << (ring % kRingsPerGroup), std::memory_order_seq_cst);
    mark(summaries_, group);
    mark(roots_, group / 64);
  }

  /// Calls visit(ring) for each marked ring and unmarks it. Threads: the worker.
  template <typename Visit>
  void take(Visit&& visit) {
    for (uint32_t root = 0; root < roots_.size(); ++root) {
      take_word(roots_[root], root, ~uint64_t{0}, [&](uint32_t summary) {
        take_word(summaries_[summary], summary, ~uint64_t{0},
                  [&](uint32_t group) { take_word(words_[group], group, ~uint64_t{0}, visit); });
      });
    }
    for (const External& e : external_) take_word(*e.word, e.group, e.mask, visit);
  }

  /// Whether anything is marked, without taking it. Threads: the worker.
  bool any() const noexcept {
    for (const auto& root : roots_) {
      if (root.load(std::memory_order_seq_cst) != 0) return true;
    }
    for (const External& e : external_) {
      if ((e.word->load(std::memory_order_seq_cst) & e.mask) != 0) return true;
    }
    return false;
  }

 private:
  struct External {
    std::atomic<uint64_t>* word;
    uint32_t group;
    uint64_t mask;  // of the bits that stand for rings
  };

  static constexpr uint32_t words_for(uint32_t bits) { return (bits + 63) / 64; }

  static void mark(std::vector<std::atomic<uint64_t>>& words, uint32_t bit) noexcept {
    std::atomic<uint64_t>& word = words[bit / 64];
    const uint64_t mask = uint64_t{1} << (bit % 64);
    if ((word.load(std::memory_order_seq_cst) & mask) == 0)
      word.fetch_or(mask, std::memory_order_seq_cst);
  }

  // Calls visit(number of the bit) for each bit of the mask.
  template <typename Visit>
  static void take_word(std::atomic<uint64_t>& word, uint32_t number, uint64_t mask,
                        Visit&& visit) {
    // A look first (S2 of native/DESIGN.md#memory-orders): an RMW on a line that others write costs far more than a load.
    if ((word.load(std::memory_order_seq_cst) & mask) == 0) return;
    for (uint64_t bits = word.exchange(0, std::memory_order_seq_cst) & mask; bits != 0;
         bits &= bits - 1) {
      visit(number * 64 + static_cast<uint32_t>(std::countr_zero(bits)));
    }
  }

  std::vector<std::atomic<uint64_t>> roots_;
  std::vector<std::atomic<uint64_t>> summaries_;
  std::vector<std::atomic<uint64_t>> words_;
  std::vector<External> external_;
  uint32_t group_count_ = 0;
};

}  // namespace faro::ring
