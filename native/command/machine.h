// The properties and limits of this machine, as the kernel reports them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace faro::command {

/// Limits of this process that a session does not check itself (for those see links/limits.h). nullopt: no limit, or
/// unknown.
struct ProcessLimits {
  std::optional<uint64_t> memlock_bytes;     ///< RLIMIT_MEMLOCK, soft
  std::optional<uint64_t> open_files;        ///< RLIMIT_NOFILE, soft
  std::optional<uint64_t> shm_folder_bytes;  ///< free in /dev/shm
};

struct Machine {
  uint32_t processors = 0;  ///< that this process may use
  std::string processor_model;
  std::optional<double> cgroup_processors;  ///< cpu.max as a number of processors
  std::string kernel;                       ///< "Linux 6.18.0 x86_64"
  std::string clock_source;                 ///< empty if not known
  std::string huge_pages;                   ///< transparent huge pages: always, madvise, never
  std::string shared_huge_pages;            ///< transparent huge pages of shared memory
};

/// Threads: any. Blocks: for reading small files of /proc and /sys.
ProcessLimits read_process_limits();
Machine read_machine();

/// "2 × Intel Xeon, Linux 6.18".
std::string machine_text(const Machine& machine);

/// The free space of a folder, and whether a file without a name can be made there.
struct FolderState {
  bool writable = false;
  std::string why_not;  ///< empty if writable
  uint64_t free_bytes = 0;
};
FolderState look_at_folder(const std::string& folder);

}  // namespace faro::command
