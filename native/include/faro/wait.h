// Wait: how long a call may wait.
#pragma once

#include "faro/detail/cxx20.h"

#include <chrono>
#include <cstdint>
#include <ratio>

#pragma GCC visibility push(default)

namespace faro {

/// How long a call may wait: the last argument of every call that can. Without it the call waits
/// forever.
///
///   sender.send(receiver, row, Wait::none());        // would_wait if there is no room now
///   sender.send(receiver, row, Wait::at_most(5ms));  // deadline if there was none for 5 ms
///   sender.send(receiver, row);                      // waits as long as it takes
///
/// A call that waits also ends by cancel, close and the loss of a peer. A negative limit is
/// refused, with invalid_argument, by the call that would wait.
class Wait {
 public:
  /// Tries once; the call answers would_wait if it would have to wait.
  static constexpr Wait none() noexcept { return Wait(kNone); }
  /// Waits until it is done.
  static constexpr Wait forever() noexcept { return Wait(kForever); }
  /// Waits until the limit has passed; the call then answers deadline, and has changed nothing.
  /// More than 292 years are forever.
  template <typename Count, typename Period>
  static constexpr Wait at_most(std::chrono::duration<Count, Period> limit) noexcept {
    using Years = std::chrono::duration<double, std::ratio<31556952>>;
    const double years = std::chrono::duration_cast<Years>(limit).count();
    if (years >= 292) return forever();
    if (years <= -292) return Wait(-1);
    return Wait(std::chrono::duration_cast<std::chrono::nanoseconds>(limit).count());
  }

  constexpr bool is_none() const noexcept { return nanoseconds_ == kNone; }
  constexpr bool is_forever() const noexcept { return nanoseconds_ == kForever; }
  /// The limit, negative if it was given so. Only for a Wait that is neither none() nor forever().
  constexpr std::chrono::nanoseconds limit() const noexcept {
    return std::chrono::nanoseconds(nanoseconds_);
  }

  constexpr bool operator==(const Wait&) const = default;

 private:
  static constexpr int64_t kNone = INT64_MIN;
  static constexpr int64_t kForever = INT64_MAX;

  explicit constexpr Wait(int64_t nanoseconds) noexcept : nanoseconds_(nanoseconds) {}

  int64_t nanoseconds_;
};

}  // namespace faro

#pragma GCC visibility pop
