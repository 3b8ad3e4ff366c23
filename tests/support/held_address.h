// HeldAddress: an address that the system gives to nobody else, also while nobody listens on it.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>

#include "base/unique_fd.h"
#include "support/expect.h"
#include "transport/tcp/socket_address.h"

namespace faro::test {

/// A socket is bound to it, and does not listen: another process that does so, with SO_REUSEADDR,
/// may; and when that one has died, connections are refused, instead of reaching a node of another
/// test that was given the port.
class HeldAddress {
 public:
  /// `address`: with port 0, for which the system chooses one; another one may be taken.
  explicit HeldAddress(const std::string& address) {
    auto resolved = transport::tcp::resolve(address);
    EXPECT_TRUE(is_ok(resolved));
    transport::tcp::SocketAddress bound = resolved.value().front();
    socket_ = base::UniqueFd(::socket(bound.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int one = 1;
    setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (::bind(socket_.get(), bound.get(), bound.length) != 0) return;
    bound.length = sizeof bound.storage;
    getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&bound.storage), &bound.length);
    address_ = transport::tcp::to_string(bound);
  }

  /// Empty: it is taken.
  const std::string& address() const { return address_; }
  int socket() const { return socket_.get(); }

 private:
  base::UniqueFd socket_;
  std::string address_;
};

}  // namespace faro::test
