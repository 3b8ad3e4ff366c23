// The transport over shared memory, between nodes of one host and one user. README.md in this
// folder says how it works.
#pragma once

#include <cstdint>
#include <memory>

#include "transport/shm/rendezvous.h"
#include "transport/standing_rings.h"
#include "transport/transport.h"

namespace faro::transport::shm {

class FdSender;

/// Threads: network thread, and the thread that opens the session before that one runs.
class ShmTransport final : public Transport {
 public:
  /// `rendezvous`: null: with processes of the same network namespace alone.
  explicit ShmTransport(std::shared_ptr<const Rendezvous> rendezvous = nullptr)
      : rendezvous_(std::move(rendezvous)) {}

  const Capabilities& capabilities() const override;
  /// Errors: transport_unavailable: what the kernel refuses here, and what to do.
  Status available() const override;
  /// The memory of the incoming direction only: that of outgoing rings is the peer's.
  uint64_t memory_bytes(const ring::Layout& outgoing, const ring::Layout& incoming) const override;
  uint64_t state_bytes(const ring::Layout& outgoing, const ring::Layout& incoming) const override;
  /// While links are being set up there is a listening socket on the reactor.
  std::unique_ptr<LinkSetup> begin(LinkContext& context) override;
  std::unique_ptr<LinkMending> mend(LinkContext&, DataLink&) override {
    return std::make_unique<StandingRings>();
  }

 private:
  const std::shared_ptr<const Rendezvous> rendezvous_;
  // Shared by the links that are being set up, and gone with the last of them.
  std::weak_ptr<FdSender> listener_;
};

}  // namespace faro::transport::shm
