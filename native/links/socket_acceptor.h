// SocketAcceptor: accepts connections, reads their preambles and tells control connections from data
// connections. TLS, if used, precedes the preamble. A plaintext preamble is read even where TLS is required,
// so that the peer can be told why it is refused. Anyone on the network can connect: the number of
// connections without a preamble, and their time, are bounded, and a flood from one address pushes out only
// connections of that address.
//
// A handshake costs a signature before the peer has shown anything, so few of one address are under way at a time. The others
// of a burst wait, unanswered; what is dropped of them has cost nothing and has not failed: its peer dials again. A handshake
// that stands still while others wait for its place has failed.
#pragma once

#include <array>
#include <list>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "faro/status.h"
#include "links/epoll_reactor.h"
#include "links/listening_socket.h"
#include "links/log_limiter.h"
#include "tls/credentials.h"
#include "tls/socket.h"
#include "wire/preamble.h"

namespace faro::links {

/// Threads: network thread. Blocks: never.
class SocketAcceptor {
 public:
  class Host {
   public:
    virtual ~Host() = default;
    virtual void on_control(tls::Socket socket, const std::string& peer_address) = 0;
    virtual void on_data(const std::array<std::byte, 16>& token, tls::Socket socket,
                         const std::string& peer_address) = 0;
    /// It does not begin as Faro's connections do, or only looks what listens.
    virtual void on_other(tls::Socket socket, const std::string& peer_address) = 0;
    /// When a peer at this address may begin TLS; 0: at once.
    virtual base::Nanoseconds may_try_at(const std::string& peer_address) = 0;
    /// How many of this address may be in the handshake at the same time: fewer once it has failed.
    virtual size_t may_try_together(const std::string& peer_address) = 0;
    /// Data connections that admitted peers are about to make: places beyond kWaitingLimit are for them.
    virtual size_t expected_streams() = 0;
    /// A peer that had to wait begins now.
    virtual void on_turn(const std::string& peer_address) = 0;
    /// TLS has failed or has taken too long, at last when others of its address waited for its place.
    /// Do not close the socket at once: that could discard the error message that was just sent.
    virtual void on_refused(base::UniqueFd socket, const std::string& peer_address,
                            const Status& cause) = 0;
  };

  /// Time for a preamble. It is generous: the peer's network thread sends the preamble one round after it connects.
  static constexpr base::Nanoseconds kPreambleTime = 5'000'000'000;
  /// Time for a preamble from the first byte of TLS on. A handshake takes the peer's network thread
  /// several rounds, and that may be clearing gigabytes of rings meanwhile.
  static constexpr base::Nanoseconds kTlsPreambleTime = 30'000'000'000;
  /// Most connections without a complete preamble. Beyond it, one of the address that has most is dropped.
  static constexpr size_t kWaitingLimit = 128;
  /// Most TLS handshakes of one address that are under way at a time. A peer begins fewer at once (tls::Turns), but an address may
  /// be that of many peers.
  static constexpr size_t kHandshakesPerAddress = 32;
  /// After this time a handshake loses its place if others of its address wait for one: generous to a peer whose processors are
  /// busy with other handshakes.
  static constexpr base::Nanoseconds kPlaceTime = 10'000'000'000;

  /// `credentials`: for peers that begin with TLS; null: TLS is refused.
  SocketAcceptor(EpollReactor& reactor, ListeningSocket listener,
                 std::shared_ptr<tls::Credentials> credentials)
      : reactor_(reactor), listener_(std::move(listener)), credentials_(std::move(credentials)) {}
  ~SocketAcceptor() { shut(); }

  /// Starts accepting. Errors: system_error.
  Status open(Host* host);
  /// Stops for good: the port is free again.
  void shut() noexcept;

  const std::string& address() const { return listener_.address(); }
  /// When check_deadlines has something to do.
  base::Nanoseconds next_deadline() const;
  void check_deadlines(base::Nanoseconds now);

 private:
  struct Waiting {
    tls::Socket socket{base::UniqueFd()};
    std::string peer_address;
    std::string host;  // that of peer_address
    base::Nanoseconds deadline = 0;
    base::Nanoseconds began = 0;  // TLS
    bool queues = false;          // may not begin TLS yet; its socket is not watched meanwhile
    // may not begin TLS yet, since others of its address are in the handshake
    bool waits_for_place = false;
    std::array<std::byte, sizeof(wire::Preamble)> bytes{};
    size_t have = 0;
  };
  using PendingSocket = std::list<Waiting>::iterator;
  /// The handshakes of one address.
  struct Places {
    size_t taken = 0;
    size_t wanted = 0;                // by those that wait
    const Waiting* oldest = nullptr;  // that takes one
  };

  void accept_some();
  bool make_room_for(const std::string& newcomer_host);
  void read_some(PendingSocket pending);
  bool begin_tls(PendingSocket pending);
  bool queue_for_tls(PendingSocket pending);
  void take_turn(PendingSocket pending);
  Places places_of(const std::string& host) const;
  size_t places_for(const Waiting& waiting);
  bool wait_for_place(PendingSocket pending);
  void give_places(base::Nanoseconds now);
  void give_place(PendingSocket pending, base::Nanoseconds now);
  void begin_late(PendingSocket pending);
  bool start_tls(PendingSocket pending);
  void judge(PendingSocket pending);
  void answer_other(PendingSocket pending);
  tls::Socket take(PendingSocket pending);
  void expire(PendingSocket pending, const std::string& cause);
  void drop(PendingSocket pending, const std::string& cause);
  void refuse(PendingSocket pending, const Status& cause);
  void warn(const std::string& peer_address, const std::string& cause);

  EpollReactor& reactor_;
  ListeningSocket listener_;
  const std::shared_ptr<tls::Credentials> credentials_;
  Host* host_ = nullptr;
  std::list<Waiting> pending_;          // oldest first
  base::Nanoseconds paused_until_ = 0;  // out of descriptors; 0: not paused
  LogLimiter limiter_;
};

}  // namespace faro::links
