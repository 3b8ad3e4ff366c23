// ListeningSocket: a bound, listening socket. Made before the network, so that ports which the system
// chooses can be exchanged before anyone dials.
#pragma once

#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "faro/status.h"

namespace faro::links {

/// Owns: the socket. Movable. Threads: a value. A child of fork inherits it; exec closes it.
/// Connections that arrive before a network uses it wait in the kernel.
class ListeningSocket {
 public:
  /// Binds to "host:port" or "[ipv6]:port" and listens; port 0 lets the system choose.
  /// Blocks: for a name as long as the system's resolver takes.
  /// Errors: address_in_use, naming the address; config_invalid if it is none of this machine's;
  /// system_error.
  static Result<ListeningSocket> bind(const std::string& address);

  /// Takes over a socket that was bound and listens already.
  static ListeningSocket adopt(base::UniqueFd socket, std::string address) {
    return {std::move(socket), std::move(address)};
  }

  /// The numeric address with the real port: "127.0.0.1:40213".
  const std::string& address() const { return address_; }
  int fd() const { return socket_.get(); }
  base::UniqueFd take() && { return std::move(socket_); }

 private:
  ListeningSocket(base::UniqueFd socket, std::string address)
      : socket_(std::move(socket)), address_(std::move(address)) {}

  base::UniqueFd socket_;
  std::string address_;
};

}  // namespace faro::links
