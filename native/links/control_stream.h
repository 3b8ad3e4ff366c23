// ControlStream: control messages over a connected socket, with TLS or without.
//
// The session holds a SocketConnection, a handle; the stream behind it lives on for a moment after
// the handle is gone, so that the last message (REFUSE, FAIL, BYE) reaches the peer: closing a
// socket with unread input would reset the connection and could destroy it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "links/epoll_reactor.h"
#include "links/network.h"
#include "tls/socket.h"
#include "tls/turns.h"

namespace faro::links {

/// Threads: network thread. Blocks: never. Owns: the socket.
class ControlStream : public std::enable_shared_from_this<ControlStream> {
 public:
  using Handler = ControlConnection::Handler;

  /// The streams that need attention in this round; kept by the network.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual EpollReactor& epoll() = 0;
    /// `stream` has something to send or to report: call settle() before the next wait.
    virtual void mark_unsettled(std::shared_ptr<ControlStream> stream) = 0;
    /// `stream` has lost its handle and lingers: keep it until ended(), or for kLinger.
    virtual void keep_lingering(std::shared_ptr<ControlStream> stream) = 0;
  };

  /// How long a stream without handle waits for the peer to take the rest and close.
  static constexpr base::Nanoseconds kLinger = 1'000'000'000;
  /// Most bytes that may wait for a peer. One that is this far behind is treated as lost.
  static constexpr size_t kOutgoingLimit = size_t{4} << 20;

  /// `turn`: of the TLS handshake that its first bytes begin, if this side has dialled.
  ControlStream(Owner& owner, tls::Socket socket, std::string peer_address,
                tls::Turns::Turn turn = {})
      : owner_(owner),
        socket_(std::move(socket)),
        peer_address_(std::move(peer_address)),
        turn_(std::move(turn)) {}
  ~ControlStream() { close(); }
  ControlStream(const ControlStream&) = delete;
  ControlStream& operator=(const ControlStream&) = delete;

  /// Registers with the reactor. Errors: system_error.
  Status start();
  /// Queues bytes as they are: the preamble.
  void send_raw(std::span<const std::byte> bytes);

  void set_handler(Handler* handler);
  void send(std::span<const std::byte> message);
  bool flushed() const { return sent_ == outgoing_.size(); }
  Status check_peer(const std::string& host) const;
  const std::string& peer_address() const { return peer_address_; }
  /// The handle was destroyed.
  void detach() noexcept;

  /// Sends what is queued, delivers what arrived before there was a handler, reports a failure.
  void settle();
  bool ended() const { return !socket_.valid(); }
  void close() noexcept;

 private:
  void on_events(uint32_t events);
  void receive();
  Status broken(int error) const;
  bool deliver();
  void flush();
  void watch();
  void fail(Status cause);
  void mark_unsettled();

  Owner& owner_;
  tls::Socket socket_;
  const std::string peer_address_;
  tls::Turns::Turn turn_;  // until something was sent
  Handler* handler_ = nullptr;
  bool lingering_ = false;
  int send_error_ = 0;  // why nothing can be sent any more
  bool shut_ = false;   // lingering, and everything was sent
  bool unsettled_ = false;
  uint32_t watched_ = 0;
  Status failure_;                   // to be reported to the handler
  std::vector<std::byte> incoming_;  // the beginning of a message
  std::vector<std::byte> outgoing_;
  size_t sent_ = 0;  // of outgoing_
};

/// What the session holds.
class SocketConnection final : public ControlConnection {
 public:
  explicit SocketConnection(std::shared_ptr<ControlStream> stream) : stream_(std::move(stream)) {}
  ~SocketConnection() override { stream_->detach(); }
  void set_handler(Handler* handler) override { stream_->set_handler(handler); }
  void send(std::span<const std::byte> message) override { stream_->send(message); }
  bool flushed() const override { return stream_->flushed(); }
  const std::string& peer_address() const override { return stream_->peer_address(); }
  Status check_peer(const std::string& host) const override { return stream_->check_peer(host); }

 private:
  const std::shared_ptr<ControlStream> stream_;
};

}  // namespace faro::links
