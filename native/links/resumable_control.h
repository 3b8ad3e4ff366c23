// ResumableControl: the control connection of a link and, if the link can be mended, those that take its place.
//
//   one breaks, on either side   ──►  detach          what has to arrive is kept (control_log.h)
//   there is another one         ──►  resume          RESUME {messages of the peer's that have come}
//   the peer's RESUME            ──►  what it has not got, in order; then what comes
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "faro/status.h"
#include "links/control_log.h"
#include "links/network.h"
#include "wire/control.h"

namespace faro::links {

/// Threads: network thread. Blocks: never. Owns: the connection.
class ResumableControl {
 public:
  /// What a message was.
  enum class Verdict {
    passes,  // the link's business
    taken,   // concerned this alone
    broken,  // against the rules
  };

  /// `keeps`: the link may be mended.
  ResumableControl(std::unique_ptr<ControlConnection> connection, bool keeps)
      : connection_(std::move(connection)) {
    if (keeps) log_.emplace();
  }

  /// Whether there is a connection.
  bool attached() const { return connection_ != nullptr; }
  bool keeps() const { return log_.has_value(); }
  std::string peer_address() const { return attached() ? connection_->peer_address() : "nowhere"; }
  void set_handler(ControlConnection::Handler& handler) { connection_->set_handler(&handler); }

  /// Sends a message. What may be lost with a connection needs one; the rest is kept. A HEARTBEAT acknowledges what has
  /// come. False if the peer is too far behind: kept_bytes() wait for it.
  bool send(const wire::ControlMessage& message);
  size_t kept_bytes() const { return log_ ? log_->bytes() : 0; }

  void detach() { connection_.reset(); }
  /// Takes the place of a connection that is detached.
  void resume(std::unique_ptr<ControlConnection> connection, ControlConnection::Handler& handler);
  /// Each message of the peer's, first of all.
  Verdict on_message(std::span<const std::byte> message);

 private:
  void beat();

  std::unique_ptr<ControlConnection> connection_;
  std::optional<ControlLog> log_;
  bool resumed_ = true;  // the peer has said RESUME on this connection, or it is the first one
};

}  // namespace faro::links
