#include "links/limits.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <string_view>

#include "base/error.h"

namespace faro::links {
namespace {

std::optional<uint64_t> read_number(const std::string& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;  // no such file, or "max"
}

// "name <number>" lines, as in memory.stat and /proc/meminfo.
uint64_t read_field(const std::string& path, std::string_view name) {
  std::ifstream file(path);
  std::string key;
  std::string rest;
  uint64_t number = 0;
  while (file >> key >> number) {
    if (key == name) return number;
    std::getline(file, rest);
  }
  return 0;
}

// What is left in one control group of version 2, which counts the page cache as used although it
// can be reclaimed.
uint64_t left_in_group(const std::string& folder) {
  const auto limit = read_number(folder + "/memory.max");
  const auto used = read_number(folder + "/memory.current");
  if (!limit || !used) return UINT64_MAX;
  const std::string stat = folder + "/memory.stat";
  const uint64_t cache = read_field(stat, "inactive_file") + read_field(stat, "active_file");
  const uint64_t firm = *used > cache ? *used - cache : 0;
  return *limit > firm ? *limit - firm : 0;
}

// "No limit" is almost 2^63 there, rounded to pages.
constexpr uint64_t kNoLimitOfVersion1 = uint64_t{1} << 60;

uint64_t left_in_group_of_version_1(const std::string& folder) {
  const auto limit = read_number(folder + "/memory.limit_in_bytes");
  const auto used = read_number(folder + "/memory.usage_in_bytes");
  if (!limit || !used || *limit >= kNoLimitOfVersion1) return UINT64_MAX;
  const std::string stat = folder + "/memory.stat";
  const uint64_t cache =
      read_field(stat, "total_inactive_file") + read_field(stat, "total_active_file");
  const uint64_t firm = *used > cache ? *used - cache : 0;
  return *limit > firm ? *limit - firm : 0;
}

// A limit of any group around ours counts. In a container the path may not exist as seen from inside; the root then is our own
// group.
template <typename Left>
uint64_t left_on_path(const std::string& root, std::string path, Left left_in) {
  uint64_t left = left_in(root);
  while (!path.empty() && path != "/") {
    left = std::min(left, left_in(root + path));
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  return left;
}

// How much memory may be pinned. The kernel counts for RDMA what is pinned, not what is locked;
// there is no limit for processes with CAP_IPC_LOCK.
uint64_t pinnable() {
  constexpr uint64_t kIpcLock = 14;  // CAP_IPC_LOCK
  std::ifstream file("/proc/self/status");
  uint64_t pinned = 0;
  bool privileged = false;
  for (std::string key, value; file >> key && std::getline(file, value);) {
    if (key == "VmPin:") pinned = std::strtoull(value.c_str(), nullptr, 10) * 1024;
    if (key == "CapEff:") privileged = (std::strtoull(value.c_str(), nullptr, 16) >> kIpcLock) & 1;
  }
  rlimit limit{};
  if (privileged || getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return UINT64_MAX;
  return limit.rlim_cur > pinned ? limit.rlim_cur - pinned : 0;
}

uint64_t descriptors_left() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"), closedir);
  if (folder == nullptr) return UINT64_MAX;
  uint64_t open = 0;
  while (readdir(folder.get()) != nullptr)
    ++open;  // counts a few too many: ".", ".." and the folder itself
  return limit.rlim_cur > open ? limit.rlim_cur - open : 0;
}

}  // namespace

uint64_t left_in_groups(const std::string& groups, const std::string& root) {
  uint64_t left = UINT64_MAX;
  std::ifstream file(groups);
  for (std::string line; std::getline(file, line);) {
    // number:controllers:path
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    if (controllers == ",,") {
      left = std::min(left, left_on_path(root, path, left_in_group));
    } else if (controllers.find(",memory,") != std::string::npos) {
      left = std::min(left, left_on_path(root + "/memory", path, left_in_group_of_version_1));
    }
  }
  return left;
}

std::string in_mebibytes(uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / 1048576.0);
}

MachineLimits machine_limits() {
  MachineLimits limits;
  if (const uint64_t kibibytes = read_field("/proc/meminfo", "MemAvailable:"); kibibytes != 0) {
    limits.available_bytes = kibibytes * 1024;
  }
  limits.cgroup_bytes = left_in_groups("/proc/self/cgroup", "/sys/fs/cgroup");
  limits.pinned_bytes = pinnable();
  limits.descriptors = descriptors_left();
  return limits;
}

Status check_limits(const Need& need, uint64_t memory_limit_bytes, const MachineLimits& machine) {
  const auto refuse = [&](std::string_view limit, uint64_t bytes, std::string_view advice) {
    return base::error(Code::resource_limit,
                       "the rings of this node need {} bytes ({}), but {} is {} bytes ({}); {}",
                       need.memory_bytes, in_mebibytes(need.memory_bytes), limit, bytes,
                       in_mebibytes(bytes), advice);
  };
  constexpr std::string_view kSmaller =
      "smaller ring.bytes, ring.per_lane or fewer workers need less";
  if (memory_limit_bytes != 0 && need.memory_bytes > memory_limit_bytes) {
    return refuse("memory.limit_bytes", memory_limit_bytes, kSmaller);
  }
  if (need.memory_bytes > machine.available_bytes) {
    return refuse("the available memory of this machine", machine.available_bytes, kSmaller);
  }
  if (need.memory_bytes > machine.cgroup_bytes) {
    return refuse("what is left in the memory control group of this process", machine.cgroup_bytes,
                  kSmaller);
  }
  if (need.pinned_bytes > machine.pinned_bytes) {
    return base::error(Code::resource_limit,
                       "the RDMA links of this node pin {} bytes ({}), but the limit of locked "
                       "memory leaves {} bytes ({}); raise it (ulimit -l, LimitMEMLOCK= of a "
                       "service, --ulimit memlock=-1 of a container), or use transport = tcp",
                       need.pinned_bytes, in_mebibytes(need.pinned_bytes), machine.pinned_bytes,
                       in_mebibytes(machine.pinned_bytes));
  }
  if (need.descriptors > machine.descriptors) {
    return base::error(Code::resource_limit,
                       "this session needs about {} file descriptors, but RLIMIT_NOFILE leaves {}; "
                       "raise it (ulimit -n)",
                       need.descriptors, machine.descriptors);
  }
  return Status::Ok();
}

Status check_budget(uint64_t memory_limit_bytes, const MachineLimits& machine) {
  if (memory_limit_bytes <= machine.cgroup_bytes) return Status::Ok();
  return base::error(
      Code::resource_limit,
      "rings and links may take {} bytes of memory ({}, memory.limit_bytes), but the memory "
      "control group of this process has {} bytes ({}) left: many links may have the process "
      "killed; set memory.limit_bytes to what there is room for",
      memory_limit_bytes, in_mebibytes(memory_limit_bytes), machine.cgroup_bytes,
      in_mebibytes(machine.cgroup_bytes));
}

Status check_operators(uint64_t operator_bytes, uint64_t memory_limit_bytes,
                       const MachineLimits& machine) {
  const auto refuse = [&](std::string_view limit, uint64_t bytes) {
    return base::error(Code::resource_limit,
                       "operators may take {} bytes of memory ({}, operator.memory_bytes), but {} "
                       "{} {} bytes ({}); lower operator.memory_bytes",
                       operator_bytes, in_mebibytes(operator_bytes), limit,
                       bytes == memory_limit_bytes ? "=" : "has left", bytes, in_mebibytes(bytes));
  };
  if (memory_limit_bytes != 0 && operator_bytes > memory_limit_bytes)
    return refuse("memory.limit_bytes", memory_limit_bytes);
  if (operator_bytes > machine.available_bytes)
    return refuse("this machine", machine.available_bytes);
  if (operator_bytes > machine.cgroup_bytes)
    return refuse("the memory control group of this process", machine.cgroup_bytes);
  return Status::Ok();
}

Status check_overflow(uint64_t needed_bytes, uint64_t overflow_bytes,
                      const MachineLimits& machine) {
  const bool is_of_group = machine.cgroup_bytes <= machine.available_bytes;
  const uint64_t left = is_of_group ? machine.cgroup_bytes : machine.available_bytes;
  if (needed_bytes <= left && overflow_bytes <= left - needed_bytes) return Status::Ok();
  return base::error(
      Code::resource_limit,
      "overflow may take {} bytes of memory ({}, overflow.memory_bytes) beside {} of rings, but {} "
      "has {} bytes ({}) left: a query whose rows are spilled may have the process killed; set "
      "overflow.memory_bytes to what there is room for",
      overflow_bytes, in_mebibytes(overflow_bytes), in_mebibytes(needed_bytes),
      is_of_group ? "the memory control group of this process" : "this machine", left,
      in_mebibytes(left));
}

}  // namespace faro::links
