#include "ring/doorbell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <ctime>

namespace faro::ring {
namespace {

// Not FUTEX_PRIVATE_FLAG: the line is shared between processes.
long futex(std::atomic<uint32_t>* word, int operation, uint32_t value, const timespec* timeout) {
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), operation, value, timeout, nullptr,
                 0);
}

}  // namespace

bool ring_doorbell(DoorbellLine& line) noexcept {
  if (line.sleeping.load(std::memory_order_seq_cst) == 0) return false;  // R2
  if (line.sleeping.exchange(0, std::memory_order_seq_cst) == 0)
    return false;                                       // another ringer was first
  futex(&line.sleeping, FUTEX_WAKE, INT_MAX, nullptr);  // with the exchange R3
  return true;
}

bool ring_for_frames(DoorbellLine& line) noexcept {
  constexpr auto kNotForFrames = static_cast<uint32_t>(WokenFor::all_but_frames);
  return line.sleeping.load(std::memory_order_seq_cst) != kNotForFrames && ring_doorbell(line);
}

bool ring_one_for_frames(std::span<DoorbellLine* const> lines, uint32_t& turn) noexcept {
  const auto count = static_cast<uint32_t>(lines.size());
  const uint32_t first = turn++;
  for (uint32_t i = 0; i < count; ++i) {
    if (ring_for_frames(*lines[(first + i) % count])) return true;
  }
  return false;
}

void Doorbell::sleep(base::Nanoseconds at_most) noexcept {
  timespec timeout;
  timeout.tv_sec = static_cast<time_t>(at_most / 1'000'000'000u);
  timeout.tv_nsec = static_cast<long>(at_most % 1'000'000'000u);
  // Returns at once with EAGAIN if the line is no longer as it was armed. A spurious return is harmless: callers
  // look at the state again.
  futex(&line_->sleeping, FUTEX_WAIT, armed_, at_most == base::kForever ? nullptr : &timeout);
  disarm();
}

void sleep_on_any(std::span<const SeenLine> lines, base::Nanoseconds at_most) noexcept {
  constexpr uint64_t kSecond = 1'000'000'000;
  constexpr uint64_t kWithoutFutex = 1'000'000;
#ifdef SYS_futex_waitv
  std::array<futex_waitv, FUTEX_WAITV_MAX> all{};
  if (lines.size() <= all.size()) {
    for (size_t i = 0; i < lines.size(); ++i) {
      all[i].uaddr = reinterpret_cast<uintptr_t>(&lines[i].line->sleeping);
      all[i].val = lines[i].sleeping;
      all[i].flags = FUTEX_32;  // not private: the line is shared between processes
    }
    timespec until;  // absolute, unlike the other futex calls
    clock_gettime(CLOCK_MONOTONIC, &until);
    const uint64_t ns = static_cast<uint64_t>(until.tv_nsec) + at_most % kSecond;
    until.tv_sec += static_cast<time_t>(at_most / kSecond + ns / kSecond);
    until.tv_nsec = static_cast<long>(ns % kSecond);
    const long result = syscall(SYS_futex_waitv, all.data(), lines.size(), 0,
                                at_most == base::kForever ? nullptr : &until, CLOCK_MONOTONIC);
    // EPERM: a container's filter of system calls that does not know it.
    if (result >= 0 || (errno != ENOSYS && errno != EPERM)) return;
  }
#endif
  const timespec short_time{0, static_cast<long>(std::min(at_most, kWithoutFutex))};
  nanosleep(&short_time, nullptr);
}

}  // namespace faro::ring
