#include "links/listening_socket.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "transport/tcp/socket_address.h"

namespace faro::links {
namespace {

using transport::tcp::SocketAddress;

// Every node of a cluster may dial at the same moment.
constexpr int kBacklog = 1024;

Status bind_error(const std::string& address, int error) {
  switch (error) {
    case EADDRINUSE:
      return base::error(Code::address_in_use,
                         "cannot listen on {}: the address is taken by another process", address);
    case EADDRNOTAVAIL:
      return base::error(
          Code::config_invalid,
          "cannot listen on {}: no address of this machine (cluster.listen can name another)",
          address);
    default:
      return base::error(Code::system_error, "cannot listen on {}: {}", address,
                         std::strerror(error));
  }
}

}  // namespace

Result<ListeningSocket> ListeningSocket::bind(const std::string& address) {
  auto resolved = transport::tcp::resolve(address);
  if (!resolved.ok())
    return base::error(Code::config_invalid, "cannot listen: {}", resolved.status().message());
  int error = EADDRNOTAVAIL;
  for (const SocketAddress& candidate : resolved.value()) {
    base::UniqueFd socket(
        ::socket(candidate.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.valid()) {
      error = errno;
      continue;
    }
    // A restarted node must not wait for connections of its predecessor to time out.
    const int one = 1;
    setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    SocketAddress bound;
    bound.length = sizeof bound.storage;
    if (::bind(socket.get(), candidate.get(), candidate.length) == 0 &&
        listen(socket.get(), kBacklog) == 0 &&
        getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound.storage), &bound.length) ==
            0) {
      return ListeningSocket(std::move(socket), transport::tcp::to_string(bound));
    }
    error = errno;
    if (error == EADDRINUSE)
      break;  // the address that the user meant; trying another one of the name would only hide that
  }
  return bind_error(address, error);
}

}  // namespace faro::links
