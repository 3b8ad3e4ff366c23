#include "ring/doorbell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

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
  if (line.sleeping.load(std::memory_order_seq_cst) == 0) return false;
  if (line.sleeping.exchange(0, std::memory_order_seq_cst) == 0)
    return false;  // another ringer was first
  futex(&line.sleeping, FUTEX_WAKE, INT_MAX, nullptr);
  return true;
}

void Doorbell::sleep(base::Nanoseconds at_most) noexcept {
  timespec timeout;
  timeout.tv_sec = static_cast<time_t>(at_most / 1'000'000'000u);
  timeout.tv_nsec = static_cast<long>(at_most % 1'000'000'000u);
  // Returns at once with EAGAIN if the line is no longer 1. A spurious return is harmless: callers
  // look at the state again.
  futex(&line_->sleeping, FUTEX_WAIT, 1, at_most == base::kForever ? nullptr : &timeout);
  disarm();
}

}  // namespace faro::ring
