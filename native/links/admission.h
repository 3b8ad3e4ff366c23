// Admission: the peers that connect to this node, until a handshake has shown that they may be linked.
//
// Anyone on the network can connect. The number of peers that are not authenticated yet, and their
// time, are bounded. A flood from one address pushes out only connections of that address, and an address from
// which too many attempts have failed has to queue (attempt_limiter.h).
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "faro/status.h"
#include "links/attempt_limiter.h"
#include "links/handshake.h"
#include "links/link_table.h"
#include "links/log_limiter.h"
#include "links/network.h"

namespace faro::links {

/// Threads: network thread. Blocks: never. Owns: handshakes of accepted connections.
class Admission final : private Network::Acceptor, private Handshake::Owner {
 public:
  class Host {
   public:
    virtual ~Host() = default;
    /// Whether the sender of this HELLO, which agrees with ours, may be linked now.
    virtual std::optional<Refusal> judge(const wire::Hello& hello, const std::string& from) = 0;
    /// The peer is admitted. The host sets the connection's handler before it returns.
    virtual void on_admitted(std::unique_ptr<ControlConnection> connection,
                             const wire::Hello& peer) = 0;
    /// A peer was refused. It has been told, and the refusal has been logged.
    virtual void on_refused(const std::string& from, const Refusal& refusal) = 0;
  };

  /// All outlive it; `links` get the data connections that arrive, and the control connections that mend them.
  Admission(Host& host, Network& network, const Identity& identity, LinkTable& links)
      : host_(host), network_(network), identity_(identity), links_(links) {}

  /// Starts accepting.
  void start() { network_.set_acceptor(this); }
  /// Refuses all handshakes in progress. Later ones are judged as before.
  void refuse_all(const Refusal& refusal);
  /// This node is closing: from now on refusals are logged without a warning.
  void expect_closing() { log_level_ = LogLevel::debug; }
  /// Stops accepting connections.
  void stop() { network_.set_acceptor(nullptr); }

  /// When check_deadlines has something to do.
  base::Nanoseconds next_deadline() const;
  void check_deadlines(base::Nanoseconds now);

 private:
  struct Pending {
    std::unique_ptr<Handshake> handshake;
    base::Nanoseconds deadline = 0;
    bool queues = false;  // its handshake has not started: too many from its address have failed
    const std::string& from() const { return handshake->peer_address(); }
  };
  using Place = std::list<Pending>::iterator;

  // Network::Acceptor
  void on_connection(std::unique_ptr<ControlConnection> connection) override;
  void on_data_stream(const StreamToken& token, transport::DataStream stream) override;
  base::Nanoseconds may_try_at(const std::string& peer_address) override;
  size_t may_try_together(const std::string& peer_address) override;
  size_t expected_streams() override { return links_.expected_streams(); }
  void on_turn(const std::string& peer_address) override;
  void on_unauthenticated(const std::string& peer_address, const Status& cause) override;
  // Handshake::Owner
  bool draw_random(std::span<std::byte> bytes) override { return network_.draw_random(bytes); }
  std::optional<Refusal> judge(const wire::Hello& hello, const std::string& from) override;
  void on_admitted(Handshake& handshake, std::unique_ptr<ControlConnection> connection,
                   const wire::Hello& peer) override;
  void on_refused(Handshake& handshake, const Refusal& refusal) override;

  base::Nanoseconds handshake_time() const;
  bool may_start(const std::string& host, base::Nanoseconds now) const;
  size_t queued_from(const std::string& host) const;
  void start_queued(base::Nanoseconds now);
  void make_room_for(const std::string& newcomer_host);
  void refuse(Place pending, const Status& cause);
  void note_refused(const std::string& from, const Refusal& refusal);
  std::optional<Refusal> judge_mending(const wire::Hello& hello);
  void mend(std::unique_ptr<ControlConnection> connection, const wire::Hello& peer);
  std::unique_ptr<Handshake> take(const Handshake& handshake);
  base::Nanoseconds now() const { return network_.reactor().clock().now_ns(); }

  Host& host_;
  Network& network_;
  const Identity& identity_;
  LinkTable& links_;
  std::list<Pending> pending_;  // by deadline
  AttemptLimiter attempts_;     // of the peers that dial this node
  LogLimiter limiter_;
  LogLevel log_level_ = LogLevel::warning;
};

}  // namespace faro::links
