// host:port as text, resolved to what sockets take.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <optional>
#include <string>
#include <vector>

#include "faro/status.h"

namespace faro::transport::tcp {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
  void set_port(uint16_t port) {
    if (family() == AF_INET6) {
      reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port = htons(port);
    } else {
      reinterpret_cast<sockaddr_in*>(&storage)->sin_port = htons(port);
    }
  }
};

/// All addresses of "host:port" or "[ipv6]:port", in the order in which to try them; never empty on success.
/// Threads: any. Blocks: never for numeric addresses; for a name as long as the system's resolver takes.
/// Errors: connect_failed, with the text and the resolver's reason.
Result<std::vector<SocketAddress>> resolve(const std::string& address);

/// The host of "host:port" or "[ipv6]:port", without brackets; empty if there is none.
std::string host_of(const std::string& address);

/// "10.0.0.2:7000" or "[::1]:7000".
std::string to_string(const SocketAddress& address);

/// Whether only this host reaches it: 127.0.0.0/8 or ::1.
bool is_loopback(const SocketAddress& address);

/// The address to dial from if a node listens at this one: the same, with a port that the system
/// chooses. None if it listens at every address of its host.
std::optional<SocketAddress> source_of(const SocketAddress& listening);

/// Lets a socket that is about to dial `peer` leave from `source`, so that on a host with several
/// networks a node uses the one of its own address in both directions. A source from which the peer
/// cannot be reached (another family, loopback) or that this host does not have is no error: then
/// the system chooses.
void leave_from(int socket, const SocketAddress& source, const SocketAddress& peer);

}  // namespace faro::transport::tcp
