#include "transport/tcp/socket_address.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cstring>
#include <memory>

namespace faro::transport::tcp {

Result<std::vector<SocketAddress>> resolve(const std::string& address) {
  const size_t colon = address.rfind(':');
  std::string host = colon == std::string::npos ? "" : address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  if (host.empty() || colon + 1 == address.size()) {
    return Status(Code::connect_failed, fmt::format("'{}' is not host:port", address));
  }

  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), address.c_str() + colon + 1, &hints, &found);
  if (error != 0) {
    return Status(Code::connect_failed,
                  fmt::format("'{}' cannot be resolved: {}", address, gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  std::vector<SocketAddress> addresses;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    if (each->ai_family != AF_INET && each->ai_family != AF_INET6) continue;
    SocketAddress& added = addresses.emplace_back();
    std::memcpy(&added.storage, each->ai_addr, each->ai_addrlen);
    added.length = each->ai_addrlen;
  }
  if (addresses.empty()) {
    return Status(Code::connect_failed, fmt::format("'{}' has no IPv4 or IPv6 address", address));
  }
  return addresses;
}

std::string to_string(const SocketAddress& address) {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (getnameinfo(address.get(), address.length, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "(unknown address)";
  }
  return address.family() == AF_INET6 ? fmt::format("[{}]:{}", host, port)
                                      : fmt::format("{}:{}", host, port);
}

}  // namespace faro::transport::tcp
