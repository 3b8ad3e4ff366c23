// RDMA: the devices, the module, the addresses that devices own, and two nodes.
#include <arpa/inet.h>
#include <dirent.h>
#include <fmt/format.h>
#include <ifaddrs.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/return_if_error.h"
#include "base/settings.h"
#include "command/doctor_checks.h"
#include "transport/plugin/plugin_loader.h"

namespace faro::command {
namespace {

std::vector<std::string> rdma_devices() {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/sys/class/infiniband"), closedir);
  if (folder == nullptr) return names;
  while (const dirent* entry = readdir(folder.get())) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> addresses;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return addresses;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN];
    const auto* address = reinterpret_cast<const sockaddr_in*>(each->ifa_addr);
    if (inet_ntop(AF_INET, &address->sin_addr, text, sizeof text) != nullptr)
      addresses.emplace_back(text);
  }
  return addresses;
}

/// Whether the module can be loaded, and then whether it finds a device for that address.
Status look_for_device(const Config& config, const std::string& address, bool& loaded) {
  FARO_ASSIGN_OR_RETURN(const auto settings, base::Settings::resolve_without_nodes(config));
  const auto transport = transport::plugin::load_verbs({settings, address + ":0", base::log_line});
  loaded = transport.ok();
  return loaded ? (*transport)->available() : transport.status();
}

}  // namespace

TransportReport check_verbs(const Config& config) {
  TransportReport report;
  report.name = "verbs";
  const std::vector<std::string> devices = rdma_devices();
  if (devices.empty()) {
    report.checks.push_back(
        {"RDMA devices", Health::absent, "none on this machine",
         "nothing: links between machines use tcp. For an RDMA NIC, install its "
         "driver, and the packages rdma-core and ibverbs-providers"});
  } else {
    report.checks.push_back(works("RDMA devices", fmt::format("{}", fmt::join(devices, ", "))));
    for (Check& port : check_rdma_ports()) report.checks.push_back(std::move(port));
  }

  std::vector<std::string> addresses = own_addresses();
  const bool chosen = !config.get("verbs.address").empty() || !config.get("verbs.device").empty();
  if (chosen) addresses = {"127.0.0.1"};  // what is set there chooses
  bool loaded = false;
  Status found(Code::transport_unavailable, "this machine has no IPv4 address");
  std::string owned;
  for (const std::string& address : addresses) {
    found = look_for_device(config, address, loaded);
    if (found.ok()) owned = address;
    if (found.ok() || !loaded) break;
  }
  const Health missing = devices.empty() ? Health::absent : Health::failed;
  report.checks.push_back(
      loaded ? works("module", "libfaro_verbs.so is loaded, with libibverbs and librdmacm")
             : Check{"module", missing, std::string(found.message()),
                     "install libibverbs1, librdmacm1 and ibverbs-providers if they are missing; "
                     "otherwise set verbs.module to the path of the libfaro_verbs.so that was "
                     "built with this faro"});
  if (loaded && !devices.empty()) {
    report.checks.push_back(
        found.ok() ? works("address", chosen ? std::string("the settings verbs.* choose a device")
                                             : fmt::format("{} belongs to a device", owned))
                   : fails("address", std::string(found.message()),
                           "give the network interface of the device an IPv4 address"));
  }
  if (found.ok()) {
    report.checks.push_back(check_sessions(config, "verbs", owned, "two nodes"));
    conclude(report);
  } else {
    report.summary = std::string(found.message());
  }
  return report;
}

}  // namespace faro::command
