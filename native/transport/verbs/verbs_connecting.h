// VerbsConnecting: the queue pairs of a link, until they are connected, one per path.
//
//   acceptor                                  initiator
//   start: listen                             start
//          ── LISTEN {address, port} ──►             resolve, create the queue pair
//   MEMORY ◄──────────────────────────► MEMORY
//   on_request: queue pair, receives   ◄──     post the receives, connect {token}
//   accept                             ──►     established
//
// LISTEN and MEMORY go over the control connection; rdma_cm's private data is the link's token, which
// ties the two together. Connections need no other name: see path_map.h.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "transport/transport.h"
#include "transport/verbs/connection_manager.h"
#include "transport/verbs/link_parts.h"
#include "transport/verbs/registered_memory.h"
#include "transport/verbs/verbs_options.h"
#include "wire/verbs_message.h"

namespace faro::transport::verbs {

/// Threads: network thread. Blocks: for system calls; none waits for the peer. Owns: the connections, until they are
/// taken.
class VerbsConnecting final : private Connection::SetupHandler,
                              private ConnectionManager::Expecting {
 public:
  /// All outlive it, as does the memory of start. `tells_address`: the peer reaches this node's device at another
  /// address than its listener.
  VerbsConnecting(LinkContext& context, ConnectionManager& manager, const VerbsOptions& options,
                  bool tells_address);
  ~VerbsConnecting() override;

  uint32_t path_count() const noexcept { return path_count_; }
  /// `incoming`: what the peer may write, by the key that it is told. `messages`: of all paths.
  Status start(const RegisteredMemory& incoming, const RegisteredMemory& messages);
  /// LISTEN or MEMORY. Errors: protocol_error, connect_failed.
  Status on_message(std::span<const std::byte> message);
  /// Set when something went wrong outside a call.
  const Status& status() const { return status_; }
  bool connected() const {
    return status_.ok() && established_ == path_count_ && peer_.has_value();
  }
  /// What the peer has told, when connected.
  const wire::VerbsMemory& peer() const { return *peer_; }
  /// A queue pair for each path, once, when connected.
  std::vector<PathParts> take();

 private:
  static constexpr uint32_t kMostRedials = 10;  // it is rare that a port is taken

  void on_resolved(Connection& connection) override;
  void on_established() override { ++established_; }
  void on_failed(Connection& connection, const Status& cause) override;
  void on_request(std::unique_ptr<Connection> connection) override;

  Status tell_listener();
  void tell_memory(const RegisteredMemory& incoming);
  Status on_listen(const wire::VerbsListen& listen);
  Status on_memory(const wire::VerbsMemory& memory);
  /// Puts a new connection, on its way to the peer, into the place of path `path`.
  Status dial(uint32_t path);
  uint32_t path_of(const Connection& connection) const;
  /// The queue pair and its receives.
  Status prepare(uint32_t path);

  LinkContext& context_;
  ConnectionManager& manager_;
  const VerbsOptions& options_;
  const bool tells_address_;
  const uint32_t path_count_;
  const RegisteredMemory* messages_ = nullptr;  // from start on
  StreamToken token_{};                         // likewise
  tcp::SocketAddress peer_device_;              // where the initiator dials
  uint32_t redials_ = 0;
  std::vector<std::unique_ptr<Connection>> connections_;  // one per path
  std::optional<wire::VerbsMemory> peer_;
  uint32_t established_ = 0;  // of connections_
  Status status_;
};

}  // namespace faro::transport::verbs
