// Transports: the transports that work on this node, preferred first, and which of them a link gets. Why a link to a peer on the same
// kernel does not share memory is logged by both sides: at level warning, once per peer, where shm.folder asks for it, else at level info. A session has them once, for all its
// workers share its links. An endpoint has them once per poller: then what one poller waits for does not concern another.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/settings.h"
#include "faro/status.h"
#include "links/network.h"
#include "tls/credentials.h"
#include "transport/shm/rendezvous.h"
#include "transport/tcp/node_turns.h"
#include "transport/tcp/socket_address.h"
#include "transport/transport.h"
#include "wire/control.h"

namespace faro::links {

/// What transports are made with, beside the settings.
struct Surroundings {
  std::string local_address;  // of this node, host:port, as peers dial it
  std::optional<transport::tcp::SocketAddress> source{};           // as Network::source
  std::shared_ptr<tls::Credentials> credentials{};                 // null: without TLS
  std::shared_ptr<const transport::shm::Rendezvous> rendezvous{};  // null: no shm.folder
  std::shared_ptr<transport::tcp::NodeTurns> turns{};  // null: rows over tcp are sent without
};

/// The transports that `settings` ask for and that work on this machine, preferred first. Errors: transport_unavailable if a
/// forced one does not work. Threads: any. Blocks: for loading a library and opening devices.
Result<std::vector<std::unique_ptr<transport::Transport>>> make_transports(
    const base::Settings& settings, const Surroundings& surroundings);

/// Threads: network thread, except where noted. Owns: the transports, except one that the network provides.
class Transports final : public transport::IdleWork {
 public:
  explicit Transports(Network& network) : network_(network) {}

  /// Makes the transports that `settings` ask for and that work on this machine; `turns` as in Surroundings. Errors: transport_unavailable
  /// if a forced one does not work; config_invalid (shm.folder).
  Status make(const base::Settings& settings,
              std::shared_ptr<transport::tcp::NodeTurns> turns = nullptr);

  /// Preferred first.
  const std::vector<transport::Transport*>& usable() const { return usable_; }
  std::vector<std::string> names() const;
  /// For HELLO: Rendezvous::identity of shm.folder; empty if there is none.
  std::string rendezvous() const;
  /// The transport for a link to this peer. Errors: transport_unavailable, with only the reasons.
  Result<transport::Transport*> choose(const wire::Hello& peer);
  /// The transport that the peer chose. Errors: transport_unavailable, with only the reason.
  Result<transport::Transport*> chosen(std::string_view name, const wire::Hello& peer);

  // --- IdleWork, of all of them; threads: any

  bool poll() noexcept override {
    bool any = false;
    for (transport::Transport* const transport : usable_) any |= transport->poll();
    return any;
  }
  void flush() noexcept override {
    for (const auto& transport : owned_) transport->flush();
  }
  void worker_sleeps() noexcept override {
    for (const auto& transport : owned_) transport->worker_sleeps();
  }
  void worker_wakes() noexcept override {
    for (const auto& transport : owned_) transport->worker_wakes();
  }

 private:
  /// Why this transport cannot link this node with that peer; null: it can.
  const char* why_not(const transport::Transport& transport, const wire::Hello& peer) const;
  /// Logs why the link to a peer on this kernel does not have a transport that is preferred to the one that it has.
  void say_why(const transport::Transport& has, const wire::Hello& peer);
  /// Whether nobody has warned of this process before. Only the last ones are remembered.
  bool is_to_be_warned_of(uint64_t incarnation);

  Network& network_;
  std::shared_ptr<const transport::shm::Rendezvous> rendezvous_;  // null: no shm.folder
  std::vector<std::unique_ptr<transport::Transport>> owned_;
  std::vector<transport::Transport*> usable_;
  std::deque<uint64_t> warned_of_;  // incarnations, the latest last
};

}  // namespace faro::links
