// MemoryTrend: whether memory grows, by looks that scatter.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace faro::soak {

/// Compares the median of the last quarter of all looks with that of the second quarter: the first is
/// for what is allocated once. Threads: one.
class MemoryTrend {
 public:
  /// `growth_bytes`: that are still taken for none.
  explicit MemoryTrend(uint64_t growth_bytes) : growth_bytes_(growth_bytes) {}

  void look(uint64_t bytes) { looks_.push_back(bytes); }
  /// That many looks are enough to tell.
  static constexpr size_t kNeeded = 16;
  bool is_known() const { return looks_.size() >= kNeeded; }
  bool grew() const { return is_known() && late() > early() + growth_bytes_; }
  /// Only if it is known.
  std::string text() const { return fmt::format("{} and {} KiB", early() / 1024, late() / 1024); }

 private:
  uint64_t early() const { return median(looks_.size() / 4, looks_.size() / 2); }
  uint64_t late() const { return median(looks_.size() / 4 * 3, looks_.size()); }
  uint64_t median(size_t begin, size_t end) const {
    std::vector<uint64_t> part(looks_.begin() + static_cast<ptrdiff_t>(begin),
                               looks_.begin() + static_cast<ptrdiff_t>(end));
    const auto middle = part.begin() + static_cast<ptrdiff_t>(part.size() / 2);
    std::nth_element(part.begin(), middle, part.end());
    return *middle;
  }

  const uint64_t growth_bytes_;
  std::vector<uint64_t> looks_;
};

}  // namespace faro::soak
