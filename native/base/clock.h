// Time as everything in Faro sees it: passed in, never global, so that the simulation can set it.
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>

namespace faro::base {

/// A monotonic time in nanoseconds; only differences mean something.
using Nanoseconds = uint64_t;

inline constexpr Nanoseconds kMillisecond = 1'000'000;

/// "No deadline".
inline constexpr Nanoseconds kForever = UINT64_MAX;

/// Threads: any.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Nanoseconds now_ns() const noexcept = 0;
};

/// CLOCK_MONOTONIC.
class SystemClock final : public Clock {
 public:
  Nanoseconds now_ns() const noexcept override {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<Nanoseconds>(t.tv_sec) * 1'000'000'000u +
           static_cast<Nanoseconds>(t.tv_nsec);
  }
  /// The instance that production code shares; stateless. Never destroyed: the threads of a session that
  /// was not closed still use it while the process exits.
  static const SystemClock& instance() noexcept {
    static const SystemClock& clock = *new const SystemClock;
    return clock;
  }
};

/// A clock that moves only when told to, for tests and the simulation.
class ManualClock final : public Clock {
 public:
  Nanoseconds now_ns() const noexcept override { return now_.load(std::memory_order_relaxed); }
  void advance(Nanoseconds by) noexcept { now_.fetch_add(by, std::memory_order_relaxed); }

 private:
  std::atomic<Nanoseconds> now_{1'000'000'000};
};

/// now + wait without overflow; kForever stays kForever.
constexpr Nanoseconds deadline_after(Nanoseconds now, Nanoseconds wait) noexcept {
  return wait >= kForever - now ? kForever : now + wait;
}

}  // namespace faro::base
