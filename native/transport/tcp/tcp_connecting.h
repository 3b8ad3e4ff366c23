// TcpConnecting: the data connection of a link, until both ends have it. The initiator dials the peer's listener and says
// in the preamble which link it means; the other side gets the connection from its session. With TLS it waits for its turn
// (tls/turns.h). What the peer drops before the preamble, since it has no place for it now, is dialled again.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "tls/credentials.h"
#include "tls/turns.h"
#include "transport/tcp/socket_address.h"
#include "transport/transport.h"

namespace faro::transport::tcp {

/// Threads: network thread. Blocks: never. Owns: the socket, until it is taken.
class TcpConnecting {
 public:
  /// `source`, `credentials`: as of TcpTransport. The context outlives it.
  TcpConnecting(LinkContext& context, const std::optional<SocketAddress>& source,
                std::shared_ptr<tls::Credentials> credentials)
      : context_(context), source_(source), credentials_(std::move(credentials)) {}
  ~TcpConnecting() { give_up(); }
  TcpConnecting(const TcpConnecting&) = delete;
  TcpConnecting& operator=(const TcpConnecting&) = delete;

  /// Initiator: dials. Errors: connect_failed, system_error.
  Status start();
  /// The other side: the connection has come. Errors: protocol_error, if none was expected; system_error.
  Status on_stream(DataStream stream);
  /// Set when something went wrong outside a call.
  const Status& status() const { return status_; }
  bool connected() const { return connected_ && status_.ok(); }
  /// The connection, once, when connected.
  DataStream take();

 private:
  void take_turn();
  void dial_all();
  void dial_next();
  bool dial_later();
  Status dial_error(int error) const;
  void on_dialled();
  void introduce();
  void wait_for_handshake();
  void watch_for_refusal();
  void dial_failed(const Status& why);
  void was_dropped(const Status& why);
  Status tls_error() const;
  Status tune();
  void give_up();
  void close_socket();

  LinkContext& context_;
  const std::optional<SocketAddress> source_;
  const std::shared_ptr<tls::Credentials> credentials_;
  std::vector<SocketAddress> addresses_;
  size_t next_address_ = 0;
  // A deferred call holds it weakly: one that comes when this has gone finds nobody.
  const std::shared_ptr<TcpConnecting*> self_ = std::make_shared<TcpConnecting*>(this);
  tls::Turns::Turn turn_;  // of the TLS handshake
  int drops_ = 0;
  base::UniqueFd pause_;  // a timer, before the connection is dialled again
  int fd_ = -1;
  std::shared_ptr<tls::Stream> tls_;
  bool registered_ = false;
  bool connected_ = false;
  Status status_;
};

}  // namespace faro::transport::tcp
