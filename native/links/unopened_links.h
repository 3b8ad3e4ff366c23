// UnopenedLinks: links that this side accepted, whose setup has failed before it had said READY, so that they came up at neither
// side. A peer that had said READY does not know that, and asks for its link to be mended: then it may make another one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <new>

namespace faro::links {

/// Threads: network thread.
class UnopenedLinks {
 public:
  /// More than fail together in the time in which peers ask.
  static constexpr size_t kLimit = 4096;

  /// By the number that LINK gave it. One that is not kept counts as one that has been up.
  void note(uint64_t number) noexcept {
    try {
      numbers_.push_back(number);
    } catch (const std::bad_alloc&) {
      return;
    }
    if (numbers_.size() > kLimit) numbers_.pop_front();
  }
  bool has(uint64_t number) const { return std::ranges::find(numbers_, number) != numbers_.end(); }

 private:
  std::deque<uint64_t> numbers_;
};

}  // namespace faro::links
