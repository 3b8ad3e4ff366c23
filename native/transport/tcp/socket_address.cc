#include "transport/tcp/socket_address.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/error.h"

namespace faro::transport::tcp {

bool is_loopback(const SocketAddress& address) {
  if (address.family() == AF_INET6) {
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr);
  }
  const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(address.storage);
  return ntohl(ipv4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

std::string host_of(const std::string& address) {
  const size_t colon = address.rfind(':');
  std::string host = colon == std::string::npos ? "" : address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  return host;
}

Result<std::vector<SocketAddress>> resolve(const std::string& address) {
  const size_t colon = address.rfind(':');
  const std::string host = host_of(address);
  if (host.empty() || colon + 1 == address.size()) {
    return base::error(Code::connect_failed, "'{}' is not host:port", address);
  }

  // getaddrinfo takes any number, modulo 65536.
  const char* const port = address.c_str() + colon + 1;
  if (std::strspn(port, "0123456789") != std::strlen(port) ||
      std::strtoul(port, nullptr, 10) > 65535)
    return base::error(Code::connect_failed, "'{}' has no port from 0 to 65535", address);
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), port, &hints, &found);
  if (error != 0) {
    return base::error(Code::connect_failed, "'{}' cannot be resolved: {}", address,
                       gai_strerror(error));
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
    return base::error(Code::connect_failed, "'{}' has no IPv4 or IPv6 address", address);
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

std::optional<SocketAddress> source_of(const SocketAddress& listening) {
  SocketAddress source = listening;
  if (source.family() == AF_INET6) {
    auto& ipv6 = reinterpret_cast<sockaddr_in6&>(source.storage);
    if (IN6_IS_ADDR_UNSPECIFIED(&ipv6.sin6_addr)) return std::nullopt;
    ipv6.sin6_port = 0;
  } else {
    auto& ipv4 = reinterpret_cast<sockaddr_in&>(source.storage);
    if (ipv4.sin_addr.s_addr == htonl(INADDR_ANY)) return std::nullopt;
    ipv4.sin_port = 0;
  }
  return source;
}

void leave_from(int socket, const SocketAddress& source, const SocketAddress& peer) {
  if (source.family() != peer.family() || (is_loopback(source) && !is_loopback(peer))) return;
  // The port only when the peer is known: otherwise each connection would take one of its own.
  const int one = 1;
  setsockopt(socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
  // Not bound is no error, as the header says.
  [[maybe_unused]] const int bound = bind(socket, source.get(), source.length);
}

}  // namespace faro::transport::tcp
