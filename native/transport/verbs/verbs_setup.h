// The setup of one link: memory, keys, connections (one per channel, each as here).
//
//   acceptor                                  initiator
//   start: allocate, register, listen         start: allocate, register
//          ── LISTEN {address, port} ──►             resolve, create the queue pair
//   MEMORY ◄──────────────────────────► MEMORY
//   on_request: queue pair, receives   ◄──     post the receives, connect {token}
//   accept                             ──►     established
//
// LISTEN and MEMORY go over the control connection; rdma_cm's private data is the link's token, which
// ties the two together. Connections need no other name: see channel_map.h.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "transport/deferred_sends.h"
#include "transport/transport.h"
#include "transport/verbs/completion_poller.h"
#include "transport/verbs/connection_manager.h"
#include "transport/verbs/registered_memory.h"
#include "transport/verbs/verbs_options.h"
#include "wire/verbs_message.h"

namespace faro::transport::verbs {

/// Threads: network thread. Blocks: for system calls; registering memory takes about 0.1 ms per MiB.
class VerbsSetup final : public LinkSetup,
                         private Connection::SetupHandler,
                         private ConnectionManager::Expecting {
 public:
  /// `tells_address`: the peer reaches this node's device at another address than its listener.
  VerbsSetup(LinkContext& context, ConnectionManager& manager,
             std::shared_ptr<CompletionPoller> poller, std::shared_ptr<DeferredSends> deferred,
             const VerbsOptions& options, bool tells_address);
  ~VerbsSetup() override;

  Status start() override;
  Status on_message(std::span<const std::byte> message) override;
  Status on_stream(DataStream stream) override;
  Status status() const override { return status_; }
  bool ready() const override {
    return status_.ok() && established_ == channel_count_ && peer_.has_value();
  }
  std::unique_ptr<DataLink> take() override;

 private:
  static constexpr uint32_t kMostRedials = 10;  // it is rare that a port is taken

  void on_resolved(Connection& connection) override;
  void on_established() override { ++established_; }
  void on_failed(const Status& cause) override;
  void on_request(std::unique_ptr<Connection> connection) override;

  Status check_limits() const;
  Status allocate();
  Status tell_listener();
  void tell_memory();
  Status on_listen(const wire::VerbsListen& listen);
  Status on_memory(const wire::VerbsMemory& memory);
  /// Puts a new connection, on its way to the peer, into the place of channel `channel`.
  Status dial(uint32_t channel);
  uint32_t channel_of(const Connection& connection) const;
  /// The queue pair and its receives.
  Status prepare(uint32_t channel);
  uint32_t write_limit() const;
  LinkParts parts();

  LinkContext& context_;
  ConnectionManager& manager_;
  const std::shared_ptr<CompletionPoller> poller_;
  const std::shared_ptr<DeferredSends> deferred_;
  const VerbsOptions options_;
  const bool tells_address_;
  const uint32_t channel_count_;
  uint32_t write_limit_ = 0;
  RegisteredMemory outgoing_;
  RegisteredMemory incoming_;
  RegisteredMemory messages_;
  tcp::SocketAddress peer_device_;  // where the initiator dials
  uint32_t redials_ = 0;
  std::vector<std::unique_ptr<Connection>> connections_;  // one per channel
  std::optional<wire::VerbsMemory> peer_;
  uint32_t established_ = 0;  // of connections_
  Status status_;
};

}  // namespace faro::transport::verbs
