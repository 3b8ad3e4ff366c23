#include "lab/bench/ring_memory.h"

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/return_if_error.h"
#include "base/settings.h"
#include "faro/session.h"
#include "lab/bench/node_life.h"
#include "lab/bench/process_group.h"

namespace faro::bench {
namespace {

/// What this process has, with its part of what others have mapped, too.
Result<uint64_t> own_bytes() {
  std::ifstream file("/proc/self/smaps_rollup");
  uint64_t kib = 0;
  uint32_t found = 0;
  for (std::string line; std::getline(file, line);) {
    unsigned long long value = 0;
    if (std::sscanf(line.c_str(), "Pss_Anon: %llu", &value) == 1 ||
        std::sscanf(line.c_str(), "Pss_Shmem: %llu", &value) == 1) {
      kib += value;
      ++found;
    }
  }
  if (found == 2) return kib * 1024;
  return Status(Code::system_error, "/proc/self/smaps_rollup has no Pss_Anon and Pss_Shmem");
}

Result<uint64_t> open_cluster_bytes(uint32_t process_count, uint32_t workers_per_process,
                                    const Config& config) {
  std::vector<ListeningSocket> listeners;
  std::vector<std::string> addresses;
  for (uint32_t process = 0; process < process_count; ++process) {
    FARO_ASSIGN_OR_RETURN(ListeningSocket listener, ListeningSocket::bind("127.0.0.1:0"));
    addresses.push_back(listener.address());
    listeners.push_back(std::move(listener));
  }
  ProcessGroupOptions options;
  options.process_count = process_count;
  options.shared_bytes = process_count * sizeof(uint64_t);
  FARO_ASSIGN_OR_RETURN(ProcessGroup group, ProcessGroup::create(options));
  auto* const grown = static_cast<uint64_t*>(group.shared_area());
  const auto body = [&](GroupMember& member) -> Status {
    ListeningSocket mine = std::move(listeners[member.process()]);
    listeners.clear();
    FARO_ASSIGN_OR_RETURN(const Config own,
                          node_config(config, member.process(), addresses, workers_per_process));
    member.meet_processes();
    FARO_ASSIGN_OR_RETURN(const uint64_t before, own_bytes());
    member.meet_processes();
    FARO_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                          Session::open(own, std::move(mine)));
    member.meet_processes();
    FARO_ASSIGN_OR_RETURN(const uint64_t after, own_bytes());
    grown[member.process()] = after - before;
    member.meet_processes();
    return session->close();
  };
  FARO_RETURN_IF_ERROR(group.run(body).status());
  uint64_t bytes = 0;
  for (uint32_t process = 0; process < process_count; ++process) bytes += grown[process];
  return bytes;
}

}  // namespace

Result<OpenMemory> open_cluster_memory(uint32_t process_count, uint32_t workers_per_process,
                                       const Config& config) {
  FARO_ASSIGN_OR_RETURN(const base::Settings settings,
                        base::Settings::resolve_without_nodes(config));
  Config larger = config;
  FARO_RETURN_IF_ERROR(larger.set("ring.bytes", 2 * settings.ring_bytes, "bench"));
  OpenMemory memory;
  FARO_ASSIGN_OR_RETURN(memory.bytes,
                        open_cluster_bytes(process_count, workers_per_process, config));
  FARO_ASSIGN_OR_RETURN(const uint64_t more,
                        open_cluster_bytes(process_count, workers_per_process, larger));
  memory.ring_bytes = more > memory.bytes ? more - memory.bytes : 0;
  return memory;
}

}  // namespace faro::bench
