// The ports of RDMA devices as the kernel shows them: state, MTU, addresses.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "command/doctor_checks.h"

namespace faro::command {
namespace {

namespace fs = std::filesystem;

std::string line_of(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) entries.push_back(entry.path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

/// The numbers of GIDs that stand for an IPv4 address over RoCEv2 ("0000:…:ffff:c0a8:0001").
std::vector<std::string> ipv4_gids(const fs::path& port) {
  std::vector<std::string> numbers;
  for (const fs::path& gid : entries_of(port / "gids")) {
    const std::string number = gid.filename();
    const bool ipv4 = line_of(gid).starts_with("0000:0000:0000:0000:0000:ffff:");
    if (ipv4 && line_of(port / "gid_attrs" / "types" / number) == "RoCE v2")
      numbers.push_back(number);
  }
  return numbers;
}

Check port_check(const std::string& device, const fs::path& port) {
  const std::string name = fmt::format("{}, port {}", device, port.filename().string());
  const std::string state = line_of(port / "state");  // "4: ACTIVE"
  const std::string layer = line_of(port / "link_layer");
  const std::string net = line_of(port / "gid_attrs" / "ndevs" / "0");
  std::string found = state + (layer.empty() ? "" : ", " + layer);
  if (!net.empty()) {
    found +=
        fmt::format(", {} with MTU {}", net, line_of(fs::path("/sys/class/net") / net / "mtu"));
  }
  if (!state.starts_with("4:")) {
    return {name, Health::failed, std::move(found),
            "the port has no link: cable, switch, and its network interface (ip link set … up)"};
  }
  const bool roce = fs::exists(port / "gid_attrs" / "types") && layer == "Ethernet";
  if (!roce) return {name, Health::ok, std::move(found), ""};
  const std::vector<std::string> gids = ipv4_gids(port);
  if (gids.empty()) {
    return {name, Health::warning, found + ", no GID of RoCEv2 with an IPv4 address",
            "give its network interface an IPv4 address (not needed for iWARP)"};
  }
  return {name, Health::ok, fmt::format("{}, GID {} (RoCEv2, IPv4)", found, fmt::join(gids, ", ")),
          ""};
}

}  // namespace

std::vector<Check> check_rdma_ports() {
  std::vector<Check> checks;
  for (const fs::path& device : entries_of("/sys/class/infiniband")) {
    for (const fs::path& port : entries_of(device / "ports"))
      checks.push_back(port_check(device.filename(), port));
  }
  return checks;
}

}  // namespace faro::command
