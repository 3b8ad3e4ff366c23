// Network: control connections and waiting, as the session layer needs them. Two implementations: sockets
// (socket_network) and the simulation (sim_network). Everything of the session above this line is the same
// code in both.
//
// A control connection carries whole messages in order, outside all rings and budgets.
#pragma once

#include <sys/random.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "faro/status.h"
#include "tls/credentials.h"
#include "transport/tcp/socket_address.h"
#include "transport/transport.h"

namespace faro::links {

/// Ties a data connection to the control connection of its link; drawn by the side that accepted the
/// control connection, told to the other in the handshake, unguessable.
using StreamToken = transport::StreamToken;

/// A connected control connection. Threads: network thread. Destruction closes it.
class ControlConnection {
 public:
  class Handler {
   public:
    virtual ~Handler() = default;
    /// A whole message; valid during the call only. May destroy the connection.
    virtual void on_message(std::span<const std::byte> message) = 0;
    /// The connection has ended: closed by the peer, or broken. Once; nothing follows. May destroy it.
    virtual void on_closed(const Status& cause) = 0;
  };

  virtual ~ControlConnection() = default;
  /// Delivers to `handler` from now on; messages that came earlier follow at once or in the next round.
  virtual void set_handler(Handler* handler) = 0;
  /// Queues a message. Never blocks. If more bytes wait for the peer than a limit allows, the connection ends
  /// (on_closed).
  virtual void send(std::span<const std::byte> message) = 0;
  /// Everything queued has left this process.
  virtual bool flushed() const = 0;
  /// The other end's address, for messages.
  virtual const std::string& peer_address() const = 0;
  /// Whether the other end has shown a certificate for this host; Ok where none are shown. Errors:
  /// authentication_failed.
  virtual Status check_peer(const std::string& host) const {
    (void)host;
    return Status::Ok();
  }
};

class Network {
 public:
  class Acceptor {
   public:
    virtual ~Acceptor() = default;
    /// A peer has connected. It is untrusted until the handshake is done; the acceptor bounds number and time.
    virtual void on_connection(std::unique_ptr<ControlConnection> connection) = 0;
    /// A data connection with this token arrived. The acceptor owns the descriptor, also if the token is
    /// unknown (then it closes it).
    virtual void on_data_stream(const StreamToken& token, transport::DataStream stream) = 0;
    /// When a peer at this address may try to prove that it belongs to the cluster; 0: at once.
    virtual base::Nanoseconds may_try_at(const std::string& peer_address) {
      (void)peer_address;
      return 0;
    }
    /// How many peers at this address may try at the same time.
    virtual size_t may_try_together(const std::string& peer_address) {
      (void)peer_address;
      return SIZE_MAX;
    }
    /// Data connections that admitted peers are about to make.
    virtual size_t expected_streams() { return 0; }
    /// A peer that had to wait makes its attempt now.
    virtual void on_turn(const std::string& peer_address) { (void)peer_address; }
    /// A peer could not prove that it belongs to the cluster, before it had a control connection.
    virtual void on_unauthenticated(const std::string& peer_address, const Status& cause) {
      (void)peer_address, (void)cause;
    }
  };

  virtual ~Network() = default;

  virtual transport::Reactor& reactor() = 0;
  /// Where this node can be reached: the address listened on, with the port that the system chose.
  virtual const std::string& local_address() const = 0;
  /// Whether that address may be reached from other machines: it is not on loopback.
  virtual bool open_to_others() const { return false; }
  /// The address from which this node dials: that at which it listens. None: the system chooses.
  virtual std::optional<transport::tcp::SocketAddress> source() const { return std::nullopt; }
  /// What this node shows of itself in TLS; null: without TLS.
  virtual std::shared_ptr<tls::Credentials> credentials() const { return nullptr; }
  /// Equal on two nodes that can share memory (same kernel, same user, same network namespace).
  virtual const std::string& host_identity() const = 0;
  /// Starts accepting.
  virtual void set_acceptor(Acceptor* acceptor) = 0;
  /// Dials. `done` is called on the network thread, once, unless the network is destroyed first. The caller decides
  /// about retries. Errors: peer_lost: nobody listens there, says its host; otherwise connect_failed.
  virtual void connect(const std::string& address,
                       std::function<void(Result<std::unique_ptr<ControlConnection>>)> done) = 0;
  /// Dials as connect() does, but in its turn, where few handshakes may be under way at a time
  /// (tls/turns.h); `soon`: before others that wait. `begins` is called when the turn has come. If
  /// it returns false nobody wants the connection any more, and `done` is not called.
  virtual void connect_in_turn(
      const std::string& address, [[maybe_unused]] bool soon, std::function<bool()> begins,
      std::function<void(Result<std::unique_ptr<ControlConnection>>)> done) {
    if (begins()) connect(address, std::move(done));
  }
  /// Waits for events at most until `until` and handles them; returns whether there were any.
  virtual bool run_once(base::Nanoseconds until) = 0;
  /// Whether connections that were destroyed still have bytes to send (a REFUSE, a FAIL). Wait a moment for them:
  /// destroying the network discards them.
  virtual bool lingering() const { return false; }
  /// Makes run_once return soon. Threads: any.
  virtual void wake() = 0;
  /// Whether the membership is to run a thread of its own (sockets), or is driven by do_work (simulation).
  virtual bool wants_thread() const = 0;
  /// The transport of every link, if this network brings its own (the simulation); null: the membership chooses per
  /// link. Owned by the network.
  virtual transport::Transport* own_transport() { return nullptr; }
  /// Fills `bytes` with unpredictable bytes, for incarnations and stream tokens. The simulation draws them from its
  /// seed. Errors: false if the system has no randomness.
  virtual bool draw_random(std::span<std::byte> bytes) {
    return getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
  }
};

}  // namespace faro::links
