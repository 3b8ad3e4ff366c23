// Resolution: the addresses of a name, without making the network thread wait for the resolver.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "faro/status.h"
#include "transport/tcp/socket_address.h"
#include "transport/transport.h"

namespace faro::links {

/// One lookup. start() resolves a numeric address itself. A separate thread looks up a name, and the
/// system's resolver may block that thread for as long as it likes.
///
/// Threads: network thread. Blocks: never, not even in its destructor: an abandoned lookup ends by
/// itself.
class Resolution {
 public:
  using Addresses = Result<std::vector<transport::tcp::SocketAddress>>;
  /// May block; called in the lookup's own thread for names.
  using Lookup = std::function<Addresses(const std::string& address)>;
  /// Called once, from the reactor or from start(). May destroy the resolution.
  /// Errors: connect_failed, naming the address and the cause.
  using Done = std::function<void(Addresses)>;

  Resolution(transport::Reactor& reactor, std::string address, Done done,
             Lookup lookup = transport::tcp::resolve);
  ~Resolution();
  Resolution(const Resolution&) = delete;
  Resolution& operator=(const Resolution&) = delete;

  void start();

 private:
  struct Wanted;

  const std::string address_;
  const Lookup lookup_;
  const std::shared_ptr<Wanted> wanted_;  // shared with the lookup's thread
};

}  // namespace faro::links
