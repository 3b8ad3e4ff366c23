// HeldFrames: which frames of a channel were given out and not released, so that none is released twice.
#pragma once

#include <bit>
#include <cstdint>

#include "ring/consumer.h"

namespace faro::endpoint {

/// Tokens are running numbers (ring/consumer.h), and the held ones are among the last kTracked.
class HeldFrames {
 public:
  void take(uint32_t token) noexcept {
    tokens_ |= bit(token);
    next_ = token + 1;
  }
  /// False if that frame is not held.
  bool release(uint32_t token) noexcept {
    const uint32_t age = next_ - 1 - token;
    if (age >= kTracked || (tokens_ & bit(token)) == 0) return false;
    tokens_ &= ~bit(token);
    return true;
  }
  bool any() const noexcept { return tokens_ != 0; }
  uint32_t count() const noexcept { return static_cast<uint32_t>(std::popcount(tokens_)); }

 private:
  static constexpr uint32_t kTracked = ring::Consumer::kTracked;
  static_assert(kTracked == 64, "a bit each");
  static uint64_t bit(uint32_t token) noexcept { return uint64_t{1} << (token % kTracked); }

  uint64_t tokens_ = 0;  // by token % kTracked
  uint32_t next_ = 0;    // behind the newest one
};

}  // namespace faro::endpoint
