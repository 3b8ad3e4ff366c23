// The transport over RDMA: one reliable connection per pair of nodes, on anything that libibverbs
// and rdma_cm know. README.md in this folder says how it works.
#pragma once

#include <memory>
#include <string>

#include "transport/deferred_sends.h"
#include "transport/plugin/plugin.h"
#include "transport/transport.h"
#include "transport/verbs/completion_poller.h"
#include "transport/verbs/connection_manager.h"
#include "transport/verbs/verbs_options.h"

namespace faro::transport::verbs {

/// Threads: network thread, and the thread that opens the session before that one runs.
class VerbsTransport final : public Transport {
 public:
  /// Looks for the device at once; available() has the result.
  explicit VerbsTransport(const plugin::Request& request);

  const Capabilities& capabilities() const override;
  Status available() const override { return available_; }
  uint64_t memory_bytes(const ring::Layout& outgoing, const ring::Layout& incoming) const override;
  uint64_t state_bytes(const ring::Layout& outgoing, const ring::Layout& incoming) const override;
  uint64_t pinned_bytes(const ring::Layout& outgoing, const ring::Layout& incoming) const override {
    return memory_bytes(outgoing, incoming);
  }
  /// Each DataLink that the setup makes must be destroyed on the network thread, or after that has ended.
  std::unique_ptr<LinkSetup> begin(LinkContext& context) override;
  std::unique_ptr<LinkMending> mend(LinkContext& context, DataLink& link) override;

  bool poll() noexcept override { return poller_ != nullptr && poller_->poll(); }
  void flush() noexcept override { deferred_->flush(); }
  void worker_sleeps() noexcept override {
    if (poller_ != nullptr) poller_->worker_sleeps();
  }
  void worker_wakes() noexcept override {
    if (poller_ != nullptr) poller_->worker_wakes();
  }

 private:
  static Result<std::string> chosen_address(const plugin::Request& request);
  Status open(const plugin::Request& request);

  const VerbsOptions options_;
  const bool address_is_set_;  // by verbs.address or verbs.device
  Status available_;
  std::unique_ptr<ConnectionManager> manager_;
  std::shared_ptr<CompletionPoller> poller_;                                     // with its links
  std::shared_ptr<DeferredSends> deferred_ = std::make_shared<DeferredSends>();  // likewise
};

}  // namespace faro::transport::verbs
