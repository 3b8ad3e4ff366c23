// SilentListener: somebody who listens where a node should be.
#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace faro::test {

/// Listens on loopback, at a port that the system chose; accepts, and says nothing by itself.
///
/// Threads: one. Blocks: accept_one.
class SilentListener {
 public:
  SilentListener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof at;
    auto* const generic = reinterpret_cast<sockaddr*>(&at);
    if (bind(socket_.get(), generic, length) != 0 || listen(socket_.get(), 16) != 0 ||
        getsockname(socket_.get(), generic, &length) != 0) {
      return;
    }
    address_ = fmt::format("127.0.0.1:{}", ntohs(at.sin_port));
  }

  const std::string& address() const { return address_; }
  /// Waits for somebody to connect, and keeps the connection.
  int accept_one() {
    accepted_.emplace_back(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    return accepted_.back().get();
  }

 private:
  base::UniqueFd socket_;
  std::string address_;
  std::vector<base::UniqueFd> accepted_;
};

}  // namespace faro::test
