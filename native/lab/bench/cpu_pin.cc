#include "lab/bench/cpu_pin.h"

#include <string>

namespace faro::bench {

Result<CpuPin> CpuPin::pin(uint32_t cpu) {
  CpuPin pin;
  sched_getaffinity(0, sizeof pin.before_, &pin.before_);
  cpu_set_t one;
  CPU_ZERO(&one);
  if (cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &pin.before_)) {
    return Status(Code::invalid_argument, "processor " + std::to_string(cpu) + " is none of the " +
                                              std::to_string(CPU_COUNT(&pin.before_)) +
                                              " that this process may use");
  }
  CPU_SET(cpu, &one);
  pin.active_ = sched_setaffinity(0, sizeof one, &one) == 0;
  if (!pin.active_) return Status(Code::system_error, "sched_setaffinity failed");
  return pin;
}

uint32_t CpuPin::first_allowed() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  for (uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) return cpu;
  }
  return 0;
}

CpuPin::~CpuPin() {
  if (active_) sched_setaffinity(0, sizeof before_, &before_);
}

}  // namespace faro::bench
