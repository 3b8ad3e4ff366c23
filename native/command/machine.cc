#include "command/machine.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/unique_fd.h"

namespace faro::command {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::optional<uint64_t> number_in(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return number;
}

/// The bracketed word: "always [madvise] never".
std::string chosen_word(const std::string& line) {
  const size_t open = line.find('[');
  const size_t close = line.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return line;
  return line.substr(open + 1, close - open - 1);
}

/// This process's group in a hierarchy: "" for version 2, else the controller of version 1.
std::optional<std::string> cgroup_path(std::string_view controller) {
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
    if (controller.empty() ? names == ",,"
                           : names.find(fmt::format(",{},", controller)) != names.npos) {
      return line.substr(second + 1);
    }
  }
  return std::nullopt;
}

/// Calls look(folder) for the group and all above it. Inside a container the path may not exist
/// there: its own group is then the mounted root.
template <class Look>
void each_level(const std::string& mount, std::string path, Look look) {
  for (;;) {
    look(mount + path);
    if (path.empty() || path == "/") return;
    path.erase(path.rfind('/'));
  }
}

std::optional<double> cgroup_processors() {
  std::optional<double> least;
  const auto consider = [&least](std::optional<uint64_t> quota, std::optional<uint64_t> period) {
    if (!quota || !period || *period == 0) return;
    const double processors = static_cast<double>(*quota) / static_cast<double>(*period);
    if (!least || processors < *least) least = processors;
  };
  if (const auto path = cgroup_path("")) {
    each_level("/sys/fs/cgroup", *path, [&](const std::string& folder) {
      const std::string line = first_line(folder + "/cpu.max");  // "max 100000" or "50000 100000"
      const size_t space = line.find(' ');
      if (space != std::string::npos) {
        consider(number_in(line), number_in(std::string_view(line).substr(space + 1)));
      }
    });
  }
  if (const auto path = cgroup_path("cpu")) {
    each_level("/sys/fs/cgroup/cpu", *path, [&](const std::string& folder) {
      consider(number_in(first_line(folder + "/cpu.cfs_quota_us")),
               number_in(first_line(folder + "/cpu.cfs_period_us")));
    });
  }
  return least;
}

std::optional<uint64_t> soft_limit(__rlimit_resource resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

std::string processor_model() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos)
      return line.substr(colon + 2);
  }
  return "unknown processor";
}

}  // namespace

ProcessLimits read_process_limits() {
  ProcessLimits limits;
  limits.memlock_bytes = soft_limit(RLIMIT_MEMLOCK);
  limits.open_files = soft_limit(RLIMIT_NOFILE);
  struct statvfs state {};
  if (statvfs("/dev/shm", &state) == 0) {
    limits.shm_folder_bytes = uint64_t{state.f_bavail} * state.f_frsize;
  }
  return limits;
}

Machine read_machine() {
  Machine machine;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    machine.processors = static_cast<uint32_t>(CPU_COUNT(&allowed));
  }
  machine.processor_model = processor_model();
  machine.cgroup_processors = cgroup_processors();
  utsname name{};
  uname(&name);
  machine.kernel = fmt::format("{} {} {}", name.sysname, name.release, name.machine);
  machine.clock_source =
      first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  const std::string huge_pages = "/sys/kernel/mm/transparent_hugepage/";
  machine.huge_pages = chosen_word(first_line(huge_pages + "enabled"));
  machine.shared_huge_pages = chosen_word(first_line(huge_pages + "shmem_enabled"));
  return machine;
}

std::string machine_text(const Machine& machine) {
  return fmt::format("{} × {}, {}", machine.processors, machine.processor_model, machine.kernel);
}

FolderState look_at_folder(const std::string& folder) {
  FolderState state;
  const base::UniqueFd file(open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file.valid()) {
    state.writable = true;
  } else if (errno == EOPNOTSUPP || errno == EISDIR) {
    // The file system has no files without a name, so make a named one and unlink it at once.
    std::string name = folder + "/faro-doctor-XXXXXX";
    const base::UniqueFd named(mkostemp(name.data(), O_CLOEXEC));
    state.writable = named.valid() && unlink(name.c_str()) == 0;
  }
  if (!state.writable) state.why_not = std::strerror(errno);
  struct statvfs space {};
  if (statvfs(folder.c_str(), &space) == 0) {
    state.free_bytes = uint64_t{space.f_bavail} * space.f_frsize;
  }
  return state;
}

}  // namespace faro::command
