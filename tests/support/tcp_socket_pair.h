// Two connected TCP sockets over loopback.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <utility>

#include "base/unique_fd.h"

namespace faro::test {

/// Both non-blocking; invalid descriptors if the system refuses.
inline std::pair<base::UniqueFd, base::UniqueFd> tcp_socket_pair() {
  const base::UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  base::UniqueFd dialler(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (bind(listener.get(), generic, length) != 0 || listen(listener.get(), 1) != 0 ||
      getsockname(listener.get(), generic, &length) != 0) {
    return {};
  }
  (void)connect(dialler.get(), generic, length);
  base::UniqueFd accepted(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  return {std::move(dialler), std::move(accepted)};
}

}  // namespace faro::test
