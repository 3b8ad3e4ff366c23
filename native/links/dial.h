// Dial: one attempt to reach an address. It tries everything that a name resolves to, one after the other.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "faro/status.h"
#include "links/epoll_reactor.h"
#include "links/resolution.h"
#include "transport/tcp/socket_address.h"

namespace faro::links {

/// Threads: network thread. Blocks: never; a name is looked up elsewhere (links/resolution.h).
class Dial {
 public:
  /// Called once, from the reactor or from start(). Errors: as Network::connect, naming the
  /// address and the cause.
  using Done = std::function<void(Result<base::UniqueFd>)>;

  /// `source`: the address to dial from; none: the system chooses.
  Dial(EpollReactor& reactor, std::string address,
       std::optional<transport::tcp::SocketAddress> source, Done done)
      : reactor_(reactor),
        source_(std::move(source)),
        done_(std::move(done)),
        resolution_(reactor, std::move(address),
                    [this](Resolution::Addresses found) { on_resolved(std::move(found)); }) {}
  ~Dial();
  Dial(const Dial&) = delete;
  Dial& operator=(const Dial&) = delete;

  /// May call `done` at once. `done` may destroy the dial.
  void start() { resolution_.start(); }

 private:
  void on_resolved(Resolution::Addresses found);
  void try_next();
  void on_connected();
  void note_failure(int error);

  EpollReactor& reactor_;
  const std::optional<transport::tcp::SocketAddress> source_;
  Done done_;
  Resolution resolution_;
  std::vector<transport::tcp::SocketAddress> candidates_;
  size_t next_ = 0;
  base::UniqueFd socket_;
  bool refused_ = true;  // by the hosts of all addresses so far
  Status last_;
};

}  // namespace faro::links
