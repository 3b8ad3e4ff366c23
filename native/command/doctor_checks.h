// The checks of `faro doctor`, one function each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "faro/config.h"

namespace faro::command {

enum class Health : uint8_t { ok, warning, failed, absent };

/// One thing that was tried or checked.
struct Check {
  std::string name;  ///< "memfd", "open files"
  Health health = Health::ok;
  std::string found;   ///< what was found, or the reason why it does not work
  std::string remedy;  ///< what to do; empty if nothing
};

/// A transport: tests each thing that it needs separately, and finally two connected nodes.
struct TransportReport {
  std::string name;
  bool works = false;
  std::string summary;  ///< one line: how fast it connected, or the first reason why not
  std::vector<Check> checks;
};

/// `config`: settings to open sessions with. Threads: the caller must expect helper threads to be
/// made and joined. Blocks: some seconds at most.
TransportReport check_shm(const Config& config);
TransportReport check_tcp(const Config& config);
TransportReport check_verbs(const Config& config);

/// Processors, memory and limits of this machine, the overflow folder, versions.
std::vector<Check> check_machine(const Config& config);
/// What the system allows this process to do: container, permissions, networks, time limits.
std::vector<Check> check_system(const Config& config);
/// Secret and certificate of this node.
std::vector<Check> check_security(const Config& config);
/// A line per RDMA device and network card: which CPUs are of its socket, and whether network.cpus are among them. `sysfs`: where the
/// kernel shows them.
std::vector<Check> check_network_cpus(const Config& config, const std::string& sysfs = "/sys");
/// A line per port of each RDMA device.
std::vector<Check> check_rdma_ports();

// Helpers for checks.

Check works(std::string name, std::string found);
Check fails(std::string name, std::string reason, std::string remedy);

/// The final proof: two nodes that shuffle rows, at a numeric address of this host.
Check check_sessions(const Config& config, const char* transport, const std::string& host,
                     std::string name);
/// The transport works if its last check, with two sessions, succeeds.
void conclude(TransportReport& report);

}  // namespace faro::command
