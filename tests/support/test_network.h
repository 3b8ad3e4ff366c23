// Which network the processes of a test use. On its own each test takes loopback and the transports that every machine
// has; tests/softroce/ has the same tests run over RDMA devices, by environment variables:
//   TEST_ADDRESSES   numeric addresses of this host, separated by commas; nodes take turns to listen on them
//   TEST_CABLES      for each of them an interface that cuts the address off when it goes down, if there are such
//   TEST_TRANSPORT   the only transport to use
// Where the lanes of sessions end (lane.ends) is chosen in the same way, by TEST_LANE_ENDS: ctest has some tests of processes
// twice more by it (system/CMakeLists.txt), ./run test --long more of them. TEST_SCHEDULE is network.schedule: with phases all rows
// over tcp wait for turns, and these are short.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace faro::test {

inline bool names_addresses() { return std::getenv("TEST_ADDRESSES") != nullptr; }

/// What is a node's in a list of the environment.
inline std::string of_node(uint32_t node, const char* variable, const char* usual) {
  const char* list = std::getenv(variable);
  std::vector<std::string> parts(1);
  for (const char each : std::string_view(list == nullptr ? usual : list)) {
    if (each == ',') {
      parts.emplace_back();
    } else {
      parts.back() += each;
    }
  }
  return parts[node % parts.size()];
}

/// The address of a node.
inline std::string node_host(uint32_t node) { return of_node(node, "TEST_ADDRESSES", "127.0.0.1"); }
/// The interface whose end cuts a node off from all others; "" if there is none.
inline std::string node_cable(uint32_t node) { return of_node(node, "TEST_CABLES", ""); }

/// What a node listens on, with a port that the system chooses.
inline std::string listen_address(uint32_t node) { return node_host(node) + ":0"; }

/// The transport that the environment names alone, or `usual`.
inline std::vector<std::string> transports_to_test(std::vector<std::string> usual) {
  const char* only = std::getenv("TEST_TRANSPORT");
  return only == nullptr ? usual : std::vector<std::string>{only};
}

/// lane.ends of sessions whose test does not say it: what the environment names, or the default.
inline const char* lane_ends_to_test() {
  const char* given = std::getenv("TEST_LANE_ENDS");
  return given == nullptr ? "workers" : given;
}

/// What sessions whose test does not say it have of network.schedule.
inline std::vector<std::pair<std::string, std::string>> schedule_to_test() {
  const char* given = std::getenv("TEST_SCHEDULE");
  if (given == nullptr) return {};
  return {
      {"network.schedule", given}, {"network.turn_bytes", "4 KiB"}, {"network.schedule_from", "1"}};
}

}  // namespace faro::test
