// HotKeys: which keys are frequent among rows that pass a table. Not part of the API.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#pragma GCC visibility push(default)

namespace faro::detail {

/// A sketch of 1024 places, of 8 KiB. A key votes for itself at its place, or against whoever has
/// it: who has it in the end has come more often than all others of the place together, by as much
/// as its votes (the majority vote of Boyer and Moore, one for each place; as in Yang et al.,
/// Elastic Sketch, SIGCOMM 2018). So what is called hot is, and a key with more rows than all
/// others of its place is found.
///
/// Threads: one.
class HotKeys {
 public:
  static constexpr size_t kPlaces = 1024;
  static constexpr uint64_t kRowsOfHot = 2048;

  /// One row of a key comes; of a sample of rows. `mixed`: its hash, mixed for this operator.
  void vote(uint64_t mixed) noexcept {
    Place& place = places_[mixed % kPlaces];
    const auto tag = static_cast<uint32_t>(mixed >> 32);
    ++votes_;
    if (place.tag == tag) {
      ++place.count;
    } else if (place.count == 0) {
      place = {tag, 1};
    } else {
      --place.count;
    }
  }
  uint64_t votes() const noexcept { return votes_; }

  /// From the votes since it was called last: which keys are hot from now on: those with more than
  /// one row of `rows_of_hot`, as far as the votes tell. Answers which share of the rows they have.
  double decide(uint64_t rows_of_hot = kRowsOfHot) noexcept;
  /// Whether any is, as decided last.
  bool any() const noexcept { return any_; }
  bool is_hot(uint64_t mixed) const noexcept {
    return hot_[mixed % kPlaces] == static_cast<uint32_t>(mixed >> 32) + uint64_t{1};
  }

 private:
  struct Place {
    uint32_t tag = 0;
    uint32_t count = 0;
  };

  std::array<Place, kPlaces> places_{};
  std::array<uint64_t, kPlaces> hot_{};  // the tag + 1; 0: none at this place
  uint64_t votes_ = 0;
  bool any_ = false;
};

}  // namespace faro::detail

#pragma GCC visibility pop
