// PathProbe: asks whether packets reach an address, and come back, before a call that waits for that.
#pragma once

#include <functional>

#include "base/unique_fd.h"
#include "faro/status.h"
#include "transport/tcp/socket_address.h"
#include "transport/transport.h"

namespace faro::transport::verbs {

/// Linux's siw makes its TCP connection within rdma_connect, for as long as TCP tries. So a path that may be dark is
/// asked first, with a TCP connection that is closed at once. An address that refuses it has answered, too.
/// Threads: network thread. Blocks: never. Destroy it to give up.
class PathProbe {
 public:
  /// Called once, from the reactor. It may destroy the probe. Errors: connect_failed, with the cause.
  using Done = std::function<void(const Status&)>;

  explicit PathProbe(Reactor& reactor) : reactor_(reactor) {}
  ~PathProbe();
  PathProbe(const PathProbe&) = delete;
  PathProbe& operator=(const PathProbe&) = delete;

  /// `local`: the address to leave from. If this fails, `done` is not called. Errors: connect_failed; system_error.
  Status start(const tcp::SocketAddress& local, const tcp::SocketAddress& peer, Done done);

 private:
  void on_answer();

  Reactor& reactor_;
  tcp::SocketAddress peer_;
  base::UniqueFd socket_;
  Done done_;
};

}  // namespace faro::transport::verbs
