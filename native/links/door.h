// Door: accepts connections, reads their preambles and tells control connections from data
// connections. With TLS, that comes before the preamble; who begins without it is no less read, so
// that it can be told. Everyone on the network can knock here: number and time of those who have
// not said who they are are bounded, and a flood from one address pushes out only its own.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "faro/status.h"
#include "links/epoll_reactor.h"
#include "links/listener.h"
#include "links/log_limiter.h"
#include "tls/credentials.h"
#include "tls/socket.h"
#include "wire/preamble.h"

namespace faro::links {

/// Threads: network thread. Blocks: never.
class Door {
 public:
  class Host {
   public:
    virtual ~Host() = default;
    virtual void on_control(tls::Socket socket, const std::string& peer_address) = 0;
    virtual void on_data(const std::array<std::byte, 16>& token, tls::Socket socket,
                         const std::string& peer_address) = 0;
    /// From when on somebody from this address may begin TLS; 0: at once.
    virtual base::Nanoseconds may_try_at(const std::string& peer_address) = 0;
    /// Somebody who had to wait for that begins now.
    virtual void on_turn(const std::string& peer_address) = 0;
    /// TLS has failed, took too long or had to make room for others of its own address. Closed at
    /// once, the socket might take along what was said about it.
    virtual void on_refused(base::UniqueFd socket, const std::string& peer_address,
                            const Status& cause) = 0;
  };

  /// Time for a preamble: it is sent a round of the other network thread after the connection, so that this is generous.
  static constexpr base::Nanoseconds kPreambleTime = 5'000'000'000;
  /// The same from the first byte of TLS on: it takes some rounds of the other network thread, which may be clearing
  /// gigabytes of rings.
  static constexpr base::Nanoseconds kTlsPreambleTime = 30'000'000'000;
  /// Connections without a complete preamble; beyond it one of the address that has most goes.
  static constexpr size_t kWaitingLimit = 128;

  /// `credentials`: for those who begin with TLS; null: nobody may.
  Door(EpollReactor& reactor, Listener listener, std::shared_ptr<tls::Credentials> credentials)
      : reactor_(reactor), listener_(std::move(listener)), credentials_(std::move(credentials)) {}
  ~Door() { shut(); }

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
    std::string host;  // of it
    base::Nanoseconds deadline = 0;
    bool queues = false;  // to begin TLS, and is not watched meanwhile
    std::array<std::byte, sizeof(wire::Preamble)> bytes{};
    size_t have = 0;
  };
  using Place = std::list<Waiting>::iterator;

  void accept_some();
  void make_room_for(const std::string& newcomer_host);
  void read_some(Place place);
  bool begin_tls(Place place);
  bool queue_for_tls(Place place);
  void take_turn(Place place);
  bool start_tls(Place place);
  void expire(Place place, const std::string& cause);
  void drop(Place place, const std::string& cause);
  void refuse(Place place, const Status& cause);
  void warn(const std::string& peer_address, const std::string& cause);

  EpollReactor& reactor_;
  Listener listener_;
  const std::shared_ptr<tls::Credentials> credentials_;
  Host* host_ = nullptr;
  std::list<Waiting> waiting_;          // oldest first
  base::Nanoseconds paused_until_ = 0;  // out of descriptors; 0: not paused
  LogLimiter limiter_;
};

}  // namespace faro::links
