// Limits: whether this machine has what a session is about to allocate; checked before it allocates anything.
#pragma once

#include <cstdint>
#include <string>

#include "faro/status.h"

namespace faro::links {

/// Descriptors of a link: control and data connection, and those that a setup needs for a moment (two memfds of each
/// side, the sockets that pass them). The rest: epoll, eventfd, timer, listener, doorbells, contexts and channels of an
/// RDMA device, and a few to spare.
inline constexpr uint32_t kDescriptorsPerLink = 8;
inline constexpr uint32_t kDescriptorsPerSession = 24;

/// What a session is going to allocate.
struct Need {
  uint64_t memory_bytes = 0;
  uint32_t descriptors = 0;   // more than the process has open now
  uint64_t pinned_bytes = 0;  // of the memory, registered with an RDMA device
};

/// What limits it; UINT64_MAX where there is no limit, or it cannot be found out.
struct MachineLimits {
  uint64_t available_bytes = UINT64_MAX;  // MemAvailable of the machine
  uint64_t cgroup_bytes = UINT64_MAX;     // left in the memory control group, and those around it
  uint64_t descriptors = UINT64_MAX;      // left below RLIMIT_NOFILE
  uint64_t pinned_bytes = UINT64_MAX;     // left below RLIMIT_MEMLOCK, unless privileged
};

/// Reads /proc and the control groups. Threads: any. Blocks: for a few small files.
MachineLimits machine_limits();

/// What is left in the memory control groups of a process, of version 1 and 2, and in those around them; UINT64_MAX: there is
/// no limit. `groups`: as /proc/self/cgroup; `root`: as /sys/fs/cgroup.
uint64_t left_in_groups(const std::string& groups, const std::string& root);

/// Ok, or resource_limit if overflow, once it is full, leaves no room for what else is needed. Nothing fails by that yet, so it
/// is only told. `overflow_bytes`: of memory.
Status check_overflow(uint64_t needed_bytes, uint64_t overflow_bytes, const MachineLimits& machine);

/// Ok, or resource_limit if memory.limit_bytes (0: none) is more than the memory control group of this process has left. Links that
/// come later are checked one by one, as if nobody else used what is left: so this is told beforehand.
Status check_budget(uint64_t memory_limit_bytes, const MachineLimits& machine);

/// Ok, or resource_limit if what operators may take (operator.memory_bytes) is more than memory.limit_bytes (0: none), or than this
/// machine or the memory control group of this process has left.
Status check_operators(uint64_t operator_bytes, uint64_t memory_limit_bytes,
                       const MachineLimits& machine);

/// Ok, or resource_limit quoting need and limit. `memory_limit_bytes`: the setting; 0: none.
Status check_limits(const Need& need, uint64_t memory_limit_bytes, const MachineLimits& machine);

/// "12.5 MiB", for messages.
std::string in_mebibytes(uint64_t bytes);

}  // namespace faro::links
