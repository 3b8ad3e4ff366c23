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

// Of one control group of version 2, which counts the page cache as used although it can be reclaimed.
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

uint64_t left_in_groups() {
  const std::string root = "/sys/fs/cgroup";
  uint64_t left = UINT64_MAX;
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("0::", 0) == 0) {
      // A limit of any group around ours counts. In a container the path may not exist as seen from
      // inside; the root then is our own group.
      std::string path = line.substr(3);
      while (!path.empty() && path != "/") {
        left = std::min(left, left_in_group(root + path));
        path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
      }
      left = std::min(left, left_in_group(root));
    } else if (const size_t at = line.find(":memory:"); at != std::string::npos) {
      for (const std::string& folder : {root + "/memory" + line.substr(at + 8), root + "/memory"}) {
        const auto limit = read_number(folder + "/memory.limit_in_bytes");
        const auto used = read_number(folder + "/memory.usage_in_bytes");
        if (limit && used && *limit < kNoLimitOfVersion1) {
          left = std::min(left, *limit > *used ? *limit - *used : 0);
        }
      }
    }
  }
  return left;
}

// As the kernel counts it for RDMA: what is pinned, not what is locked; no limit for processes with CAP_IPC_LOCK.
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

std::string in_mebibytes(uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / 1048576.0);
}

MachineLimits machine_limits() {
  MachineLimits limits;
  if (const uint64_t kibibytes = read_field("/proc/meminfo", "MemAvailable:"); kibibytes != 0) {
    limits.available_bytes = kibibytes * 1024;
  }
  limits.cgroup_bytes = left_in_groups();
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

}  // namespace faro::links
