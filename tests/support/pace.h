// Pace: how many bytes in a second may pass.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace faro::test {

/// What might have passed and did not may pass later.
///
/// Threads: set: any; the rest: the one that lets bytes pass.
class Pace {
 public:
  /// 0: any number.
  void set(uint64_t bytes_per_second) { bytes_per_second_ = bytes_per_second; }
  /// How many bytes may pass now.
  size_t allowance() {
    if (bytes_per_second_ == 0) return SIZE_MAX;
    const auto now = std::chrono::steady_clock::now();
    if (spent_ == 0) began_ = now;
    const std::chrono::duration<double> time = now - began_;
    const auto earned =
        static_cast<uint64_t>(time.count() * static_cast<double>(bytes_per_second_));
    return earned + 1 > spent_ ? earned + 1 - spent_ : 0;
  }
  /// That many have passed.
  void spend(size_t bytes) {
    if (bytes_per_second_ != 0) spent_ += bytes;
  }

 private:
  std::atomic<uint64_t> bytes_per_second_{0};
  std::chrono::steady_clock::time_point began_;  // with the first byte that it counted
  uint64_t spent_ = 0;                           // since then
};

}  // namespace faro::test
