// The transport over TCP: one connection per pair of nodes, for machines without anything better
// between them. README.md in this folder says how it works.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "tls/credentials.h"
#include "transport/deferred_sends.h"
#include "transport/tcp/node_turns.h"
#include "transport/tcp/socket_address.h"
#include "transport/tcp/tcp_receiver.h"
#include "transport/transport.h"

namespace faro::transport::tcp {

/// Threads: network thread, and the thread that opens the session before that one runs.
class TcpTransport final : public Transport {
 public:
  /// `source`: the address from which data connections are dialled; none: the system chooses.
  /// `credentials`: to dial them with TLS; null: in the clear. `turns`: those of the node, for links whose
  /// context has some; null: none.
  explicit TcpTransport(std::optional<SocketAddress> source = std::nullopt,
                        std::shared_ptr<tls::Credentials> credentials = nullptr,
                        std::shared_ptr<NodeTurns> turns = nullptr)
      : source_(std::move(source)),
        credentials_(std::move(credentials)),
        turns_(std::move(turns)) {}

  const Capabilities& capabilities() const override;
  /// Always ok: a machine without TCP cannot even have a session.
  Status available() const override;
  uint64_t memory_bytes(const ring::Layout& outgoing, const ring::Layout& incoming) const override;
  uint64_t state_bytes(const ring::Layout& outgoing, const ring::Layout& incoming) const override;
  /// Each DataLink that comes of it must be destroyed on the network thread, or after that has
  /// ended.
  std::unique_ptr<LinkSetup> begin(LinkContext& context) override;
  std::unique_ptr<LinkMending> mend(LinkContext& context, DataLink& link) override;

  bool poll() noexcept override { return receiver_->poll(); }
  void flush() noexcept override { deferred_->flush(); }
  void worker_sleeps() noexcept override { receiver_->worker_sleeps(); }
  void worker_wakes() noexcept override { receiver_->worker_wakes(); }

 private:
  const std::optional<SocketAddress> source_;
  const std::shared_ptr<tls::Credentials> credentials_;
  std::shared_ptr<DeferredSends> deferred_ = std::make_shared<DeferredSends>();  // with its links
  const std::shared_ptr<NodeTurns> turns_;  // with its links, and the receiver's
  std::shared_ptr<TcpReceiver> receiver_ =
      std::make_shared<TcpReceiver>(turns_ == nullptr ? nullptr : &turns_->turns());  // likewise
};

}  // namespace faro::transport::tcp
