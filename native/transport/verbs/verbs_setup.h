// Setting a link up, and mending it: both connect queue pairs (verbs_connecting.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "transport/deferred_sends.h"
#include "transport/transport.h"
#include "transport/verbs/completion_poller.h"
#include "transport/verbs/connection_manager.h"
#include "transport/verbs/mending_over.h"
#include "transport/verbs/registered_memory.h"
#include "transport/verbs/verbs_connecting.h"
#include "transport/verbs/verbs_link.h"
#include "transport/verbs/verbs_options.h"

namespace faro::transport::verbs {

/// The memory of a link, and its queue pairs.
/// Threads: network thread. Blocks: for system calls; registering memory takes about 0.1 ms per MiB.
class VerbsSetup final : public LinkSetup {
 public:
  /// `tells_address`: as of VerbsConnecting.
  VerbsSetup(LinkContext& context, ConnectionManager& manager,
             std::shared_ptr<CompletionPoller> poller, std::shared_ptr<DeferredSends> deferred,
             const VerbsOptions& options, bool tells_address);

  Status start() override;
  Status on_message(std::span<const std::byte> message) override {
    return connecting_.on_message(message);
  }
  Status on_stream(DataStream stream) override;
  Status status() const override { return failure_.ok() ? connecting_.status() : failure_; }
  bool ready() const override { return connecting_.connected(); }
  std::unique_ptr<DataLink> take() override;

 private:
  Status check_limits() const;
  Status allocate();
  uint32_t write_limit() const;
  LinkParts parts();

  LinkContext& context_;
  ConnectionManager& manager_;
  const std::shared_ptr<CompletionPoller> poller_;
  const std::shared_ptr<DeferredSends> deferred_;
  const VerbsOptions& options_;
  uint32_t write_limit_ = 0;
  RegisteredMemory outgoing_;
  RegisteredMemory incoming_;
  RegisteredMemory messages_;
  VerbsConnecting connecting_;
  Status failure_;
};

/// Other queue pairs for a link whose own have broken. The peer's key is dead with the old ones: it gets another.
/// Threads, Blocks: as VerbsSetup.
class VerbsMending final : public MendingOver<VerbsConnecting> {
 public:
  /// `tells_address`: as of VerbsConnecting.
  VerbsMending(LinkContext& context, ConnectionManager& manager, const VerbsOptions& options,
               bool tells_address, VerbsLink& link)
      : MendingOver(context, link, context, manager, options, tells_address),
        context_(context),
        manager_(manager) {}

  Status start() override;

 private:
  LinkContext& context_;
  ConnectionManager& manager_;
};

}  // namespace faro::transport::verbs
