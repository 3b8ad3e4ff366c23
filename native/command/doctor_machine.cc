#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gnu/libc-version.h>

#include <algorithm>
#include <string>
#include <vector>

#include "command/doctor_checks.h"
#include "command/machine.h"
#include "command/text.h"
#include "command/version.h"
#include "links/limits.h"
#include "shuffle/kernels/kernels.h"

namespace faro::command {
namespace {

// Below these a small cluster may already be refused: 16 nodes × 4 workers take 15 MiB each way.
constexpr uint64_t kLittleMemoryBytes = uint64_t{256} << 20;
constexpr uint64_t kFewOpenFiles = 256;
constexpr uint64_t kLittleMemlockBytes = uint64_t{64} << 20;

std::string limit_text(std::optional<uint64_t> bytes) {
  return bytes ? bytes_text(*bytes) : "no limit";
}

Check memory_check(const char* name, uint64_t bytes, const char* remedy) {
  if (bytes == UINT64_MAX) return {name, Health::ok, "no limit", ""};
  const bool little = bytes < kLittleMemoryBytes;
  return {name, little ? Health::warning : Health::ok, bytes_text(bytes), little ? remedy : ""};
}

Check overflow_check(const Config& config, const links::MachineLimits& limits) {
  const uint64_t bytes = config.get_number("overflow.memory_bytes");
  const Status fits = links::check_overflow(0, bytes, limits);
  return {"overflow", fits.ok() ? Health::ok : Health::warning,
          fmt::format("{} of memory, beside the rings", bytes_text(bytes)),
          fits.ok() ? "" : std::string(fits.message())};
}

Check budget_check(const Config& config, const links::MachineLimits& limits) {
  const uint64_t bytes = config.get_number("memory.limit_bytes");
  const Status fits = links::check_budget(bytes, limits);
  return {"rings and links", fits.ok() ? Health::ok : Health::warning,
          bytes == 0 ? "as many as there is memory for (memory.limit_bytes is 0)"
                     : fmt::format("{} at most, by memory.limit_bytes", bytes_text(bytes)),
          fits.ok() ? "" : std::string(fits.message())};
}

Check memlock_check(const ProcessLimits& process, const links::MachineLimits& limits) {
  std::string found = limit_text(process.memlock_bytes);
  if (limits.pinned_bytes == UINT64_MAX || limits.pinned_bytes >= kLittleMemlockBytes)
    return {"memlock", Health::ok, std::move(found), ""};
  if (check_rdma_ports().empty())
    return {"memlock", Health::ok, found + " (enough for shm and tcp; RDMA would need more)", ""};
  return {"memlock", Health::warning, std::move(found),
          "rings over RDMA are locked memory: raise it (ulimit -l, LimitMEMLOCK of the service, "
          "--ulimit memlock of the container); CAP_IPC_LOCK helps root only"};
}

Check overflow_check(const Config& config) {
  const std::string folder = config.get("overflow.folder");
  const uint64_t wanted = config.get_number("overflow.file_bytes");
  const std::string name = "overflow folder";
  const FolderState state = look_at_folder(folder);
  if (!state.writable) {
    return {name, Health::failed, fmt::format("{}: {}", folder, state.why_not),
            "set overflow.folder to a folder that this user can write to"};
  }
  std::string found = fmt::format("{}, {} free", folder, bytes_text(state.free_bytes));
  if (state.free_bytes >= wanted) return {name, Health::ok, std::move(found), ""};
  return {
      name, Health::warning, std::move(found),
      fmt::format("overflow.file_bytes is {}: lower it, or set overflow.folder to a larger disk",
                  bytes_text(wanted))};
}

Check clock_check(const Machine& machine) {
  if (machine.clock_source.empty()) return {"clock", Health::ok, "source not known", ""};
  // These are read without a system call.
  const bool quick = machine.clock_source == "tsc" || machine.clock_source == "kvm-clock" ||
                     machine.clock_source == "hyperv_clocksource_tsc_page" ||
                     machine.clock_source == "arch_sys_counter";
  return {
      "clock", quick ? Health::ok : Health::warning, machine.clock_source,
      quick ? "" : "reading the time takes a system call here; tsc or kvm-clock would be faster"};
}

/// Which loops send rows of each width, and how long those that are supported take.
void add_kernel_checks(const Config& config, std::vector<Check>& checks) {
  constexpr uint32_t kReceivers = 4;
  const std::string setting = config.get("kernel.scatter");
  for (const uint32_t row_bytes : shuffle::kKernelWidths) {
    std::vector<std::string> times;
    for (const shuffle::KernelTime& time :
         shuffle::calibrate(KeyHash::finalizer, row_bytes, kReceivers)) {
      times.push_back(fmt::format("{} {:.2f}", kernel_name(time.kernel), time.ns_per_row));
    }
    const std::string chosen(setting == "auto" ? kernel_name(shuffle::fastest_kernel(
                                                     KeyHash::finalizer, row_bytes, kReceivers))
                                               : setting);
    checks.push_back({fmt::format("rows of {} bytes", row_bytes), Health::ok,
                      fmt::format("{}{} (ns per row to {} receivers: {})", chosen,
                                  setting == "auto" ? "" : " by kernel.scatter", kReceivers,
                                  fmt::join(times, ", ")),
                      ""});
  }
}

}  // namespace

std::vector<Check> check_machine(const Config& config) {
  const Machine machine = read_machine();
  const links::MachineLimits limits = links::machine_limits();
  const ProcessLimits process = read_process_limits();
  std::vector<Check> checks;

  std::string processors = fmt::format("{} × {}", machine.processors, machine.processor_model);
  if (machine.cgroup_processors) {
    processors += fmt::format(", control group: {:.1f}", *machine.cgroup_processors);
  }
  checks.push_back({"processors", Health::ok, std::move(processors), ""});
  add_kernel_checks(config, checks);
  checks.push_back(memory_check("memory", limits.available_bytes,
                                "little memory: `faro plan` shows what a cluster needs"));
  checks.push_back(memory_check("memory control group", limits.cgroup_bytes,
                                "raise the container's memory limit; rings and overflow count "
                                "against it"));
  checks.push_back(overflow_check(config, limits));
  checks.push_back(budget_check(config, limits));
  checks.push_back(memlock_check(process, limits));
  const bool few_files = limits.descriptors < kFewOpenFiles;
  checks.push_back({"open files", few_files ? Health::warning : Health::ok,
                    process.open_files
                        ? fmt::format("{}, {} of them free", grouped(*process.open_files),
                                      grouped(limits.descriptors))
                        : "no limit",
                    few_files ? "raise RLIMIT_NOFILE (ulimit -n); a link takes two" : ""});
  checks.push_back(
      {"/dev/shm", Health::ok,
       fmt::format("{} free (for counters only: rings are memfds, which count as memory)",
                   limit_text(process.shm_folder_bytes)),
       ""});
  checks.push_back(
      {"transparent huge pages", Health::ok,
       fmt::format("{}; shared memory: {}",
                   machine.huge_pages.empty() ? "none" : machine.huge_pages,
                   machine.shared_huge_pages.empty() ? "none" : machine.shared_huge_pages),
       ""});
  checks.push_back(overflow_check(config));
  checks.push_back(clock_check(machine));
  checks.push_back({"kernel, libc", Health::ok,
                    fmt::format("{}, glibc {}", machine.kernel, gnu_get_libc_version()), ""});
  checks.push_back({"version", Health::ok, version_text(), ""});
  return checks;
}

}  // namespace faro::command
