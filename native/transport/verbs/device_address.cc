#include "transport/verbs/device_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "base/error.h"

namespace faro::transport::verbs {
namespace {

// More than any device has.
constexpr uint32_t kGidLimit = 1024;

template <typename... Args>
Status unavailable(fmt::format_string<Args...> text, Args&&... args) {
  return base::error(Code::transport_unavailable, text, std::forward<Args>(args)...);
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Places without a GID cannot be read, or have no type.
std::optional<std::string> address_of_gid(const std::string& port_folder, uint32_t index) {
  const std::string type = first_line(fmt::format("{}/gid_attrs/types/{}", port_folder, index));
  if (type != "RoCE v2") return std::nullopt;
  return ipv4_of_gid(first_line(fmt::format("{}/gids/{}", port_folder, index)));
}

Result<std::string> address_of_port(const std::string& name, const std::string& port_folder,
                                    std::optional<uint32_t> gid_index) {
  if (gid_index) {
    if (const auto address = address_of_gid(port_folder, *gid_index)) return *address;
    return unavailable("GID {} of {} is no IPv4 address of RoCEv2 (`show_gids`, or {}/gids)",
                       *gid_index, name, port_folder);
  }
  for (uint32_t index = 0; index < kGidLimit; ++index) {
    if (const auto address = address_of_gid(port_folder, index)) return *address;
  }
  return unavailable(
      "{} has no IPv4 address of RoCEv2 among its GIDs; name the network interface instead, or set "
      "verbs.address",
      name);
}

Result<std::string> address_of_interface(const std::string& name) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return unavailable("getifaddrs: {}", std::strerror(errno));
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  bool exists = false;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (name != each->ifa_name) continue;
    exists = true;
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN];
    const auto* address = reinterpret_cast<const sockaddr_in*>(each->ifa_addr);
    if (inet_ntop(AF_INET, &address->sin_addr, text, sizeof text) != nullptr)
      return std::string(text);
  }
  if (exists) return unavailable("the interface {} has no IPv4 address", name);
  return unavailable("there is no RDMA device and no network interface {}", name);
}

}  // namespace

std::optional<std::string> ipv4_of_gid(const std::string& gid) {
  in6_addr address{};
  if (inet_pton(AF_INET6, gid.c_str(), &address) != 1 || !IN6_IS_ADDR_V4MAPPED(&address))
    return std::nullopt;
  char text[INET_ADDRSTRLEN];
  if (inet_ntop(AF_INET, &address.s6_addr[12], text, sizeof text) == nullptr) return std::nullopt;
  return std::string(text);
}

Result<std::string> device_address(const std::string& name, std::optional<uint32_t> gid_index,
                                   const std::string& sysfs) {
  const size_t colon = name.find(':');
  const std::string folder = sysfs + "/class/infiniband/" + name.substr(0, colon);
  const std::string port = colon == std::string::npos ? "1" : name.substr(colon + 1);
  std::error_code ignored;
  if (!std::filesystem::exists(folder, ignored)) {
    if (gid_index)
      return unavailable("verbs.gid_index needs an RDMA device in verbs.device, and {} is none",
                         name);
    return address_of_interface(name);
  }
  const std::string port_folder = folder + "/ports/" + port;
  if (!std::filesystem::exists(port_folder, ignored))
    return unavailable("{} has no port {}", name.substr(0, colon), port);
  return address_of_port(name, port_folder, gid_index);
}

}  // namespace faro::transport::verbs
