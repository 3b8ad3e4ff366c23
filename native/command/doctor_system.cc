// What the system allows a process to do: container, privileges, huge pages, time limits, networks.
#include <fmt/format.h>
#include <ifaddrs.h>
#include <linux/capability.h>
#include <net/if.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "command/doctor_checks.h"
#include "command/machine.h"
#include "command/text.h"

namespace faro::command {
namespace {

// A JVM's collector, or an overloaded machine, can pause a process for about this long.
constexpr uint64_t kShortLivenessMs = 2000;
// The counters of a node of 16 × 4 workers take 100 KiB.
constexpr uint64_t kLittleCounterBytes = uint64_t{1} << 20;
// The MTU of Ethernet without tunnels; with a smaller one the same headers and interrupts carry less.
constexpr uint64_t kSmallMtu = 1500;

uint64_t meminfo(const std::string& name) {
  std::ifstream file("/proc/meminfo");
  std::string word;
  while (file >> word) {
    uint64_t value = 0;
    if (word == name + ":" && file >> value) return value;
  }
  return 0;
}

Check counters_folder_check(const Config& config) {
  const std::string name = "counters folder";
  const std::string folder = config.get("counters.folder");
  if (folder.empty()) {
    return {name, Health::ok, "none: counters.folder is empty, faro stat sees no node", ""};
  }
  const FolderState state = look_at_folder(folder);
  if (!state.writable) {
    return {name, Health::warning, fmt::format("{}: {}", folder, state.why_not),
            "set counters.folder to a folder that this user can write to; until then faro stat "
            "sees no node"};
  }
  const bool little = state.free_bytes < kLittleCounterBytes;
  return {name, little ? Health::warning : Health::ok,
          fmt::format("{}, {} free", folder, bytes_text(state.free_bytes)),
          little ? "make room there, or set counters.folder to another: a node whose counters find "
                   "none is not seen by "
                   "faro stat (`faro plan` says how much they take)"
                 : ""};
}

Check huge_pages_check(const Config& config) {
  const uint64_t free_pages = meminfo("HugePages_Free");
  const std::string found = fmt::format("{} free of {}", grouped(free_pages),
                                        counted(meminfo("HugePages_Total"), "page"));
  const bool wanted = config.get_number("verbs.huge_pages") != 0;
  if (wanted && free_pages == 0) {
    return {"huge pages", Health::failed, found,
            "verbs.huge_pages is 1: reserve some (sysctl vm.nr_hugepages=…), or set it to 0"};
  }
  return {"huge pages", Health::ok, found + (wanted ? "" : " (not used: verbs.huge_pages is 0)"),
          ""};
}

/// Empty if it seems to be none.
std::string container_kind() {
  if (std::getenv("KUBERNETES_SERVICE_HOST") != nullptr) return "Kubernetes";
  if (access("/.dockerenv", F_OK) == 0) return "Docker";
  if (access("/run/.containerenv", F_OK) == 0) return "Podman";
  const char* const set = std::getenv("container");
  return set != nullptr ? set : "";
}

bool may_lock_memory() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  return syscall(SYS_capget, &header, data) == 0 && (data[0].effective >> CAP_IPC_LOCK & 1) != 0;
}

Check container_check() {
  const std::string kind = container_kind();
  if (kind.empty()) return {"container", Health::ok, "none found", ""};
  return {"container", Health::ok,
          fmt::format("{}: shm only joins nodes that share its network and users, and limits of "
                      "memory are the container's",
                      kind),
          ""};
}

Check permissions_check(const Config& config) {
  std::string found = fmt::format("user {}, {} CAP_IPC_LOCK (memory beyond memlock)", geteuid(),
                                  may_lock_memory() ? "with" : "without");
  const bool devices = access("/dev/infiniband", F_OK) == 0;
  if (devices && access("/dev/infiniband/rdma_cm", R_OK | W_OK) != 0) {
    const Health missing = config.get("transport") == "verbs" ? Health::failed : Health::warning;
    return {"permissions", missing, found + "; /dev/infiniband/rdma_cm cannot be opened",
            "let this user read and write /dev/infiniband/*; in a container pass the devices in"};
  }
  return {"permissions", Health::ok, std::move(found), ""};
}

Check time_limits_check(const Config& config) {
  const uint64_t liveness_ms = config.get_number("liveness.timeout_ms");
  std::string found =
      fmt::format("liveness.timeout_ms {}, connect.timeout_ms {}", grouped(liveness_ms),
                  grouped(config.get_number("connect.timeout_ms")));
  rlimit cpu{};
  if (getrlimit(RLIMIT_CPU, &cpu) == 0 && cpu.rlim_cur != RLIM_INFINITY) {
    return {
        "time limits", Health::warning,
        fmt::format("{}; the system ends a process after {} s of CPU time", found, cpu.rlim_cur),
        "raise RLIMIT_CPU (ulimit -t unlimited)"};
  }
  if (liveness_ms < kShortLivenessMs) {
    return {"time limits", Health::warning, std::move(found),
            "a process that pauses even briefly is declared lost: raise "
            "liveness.timeout_ms"};
  }
  return {"time limits", Health::ok, std::move(found), ""};
}

uint64_t mtu_of(const std::string& interface) {
  std::ifstream file("/sys/class/net/" + interface + "/mtu");
  uint64_t mtu = 0;
  file >> mtu;
  return mtu;
}

Check network_check() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {"networks", Health::warning, "cannot be listed", ""};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  std::set<std::string> interfaces;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    const bool up = (each->ifa_flags & IFF_UP) != 0 && (each->ifa_flags & IFF_LOOPBACK) == 0;
    if (up && each->ifa_addr != nullptr && each->ifa_addr->sa_family != AF_PACKET)
      interfaces.insert(each->ifa_name);
  }
  if (interfaces.empty()) {
    return {"networks", Health::warning, "only loopback",
            "nodes of other machines cannot be reached: bring an interface up"};
  }
  std::string found;
  bool small = false;
  for (const std::string& name : interfaces) {
    const uint64_t mtu = mtu_of(name);
    small = small || (mtu != 0 && mtu < kSmallMtu);
    found += fmt::format("{}{} (MTU {})", found.empty() ? "" : ", ", name, mtu);
  }
  return {"networks", small ? Health::warning : Health::ok, std::move(found),
          small ? "a small MTU costs tcp throughput: raise it on the whole path (ip link set … mtu)"
                : ""};
}

}  // namespace

std::vector<Check> check_system(const Config& config) {
  return {counters_folder_check(config), huge_pages_check(config), container_check(),
          permissions_check(config),     network_check(),          time_limits_check(config)};
}

}  // namespace faro::command
