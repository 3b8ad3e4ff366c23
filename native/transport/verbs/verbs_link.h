// One link over RDMA: its rings, their memory, and the queue pairs that move it.
//
//                  ┌ outgoing rings ┐                            ┌ incoming region
//   workers ──────►┤                ├──► channels ══ network ══► ┤
//                  └ incoming rings ┘    (verbs_channel.h)       └ messages
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>

#include "transport/transport.h"
#include "transport/verbs/channel_map.h"
#include "transport/verbs/immediate_code.h"
#include "transport/verbs/link_parts.h"
#include "transport/verbs/verbs_channel.h"
#include "transport/verbs/verbs_rings.h"

namespace faro::transport::verbs {

/// Threads: outgoing and incoming ends as in transport.h; start and destruction: network thread, or any while that does
/// not run. Owns: the queue pairs and the memory of the rings.
class VerbsLink final : public DataLink {
 public:
  VerbsLink(LinkContext& context, const std::shared_ptr<CompletionPoller>& poller,
            const std::shared_ptr<DeferredSends>& deferred, LinkParts parts);
  ~VerbsLink() override;
  VerbsLink(const VerbsLink&) = delete;
  VerbsLink& operator=(const VerbsLink&) = delete;

  /// From now on completions are handled. Errors: system_error.
  Status start();

  const Capabilities& capabilities() const override { return capabilities_; }
  Outgoing& outgoing(uint32_t ring) override { return outgoing_[ring]; }
  Incoming& incoming(uint32_t ring) override { return incoming_[ring]; }
  void add_counters(LinkCounters& sum) const override;
  void stop() noexcept override { end(); }

  /// The link can carry nothing any more; of several causes the first is reported. Has no effect after stop: then
  /// a broken connection is no failure. Threads: any.
  void fail(const Status& cause);

 private:
  friend class VerbsChannel;

  bool end() noexcept;
  bool stopped() const noexcept { return stopped_.load(std::memory_order_acquire); }

  // Constant after construction.
  LinkContext& context_;
  const std::shared_ptr<CompletionPoller> poller_;
  const std::shared_ptr<DeferredSends> deferred_;
  LinkParts parts_;  // except its channels
  const Capabilities capabilities_;
  const ImmediateCode outgoing_code_;
  const ImmediateCode incoming_code_;
  std::deque<VerbsOutgoing> outgoing_;
  std::deque<VerbsIncoming> incoming_;

  std::atomic<bool> stopped_{false};

  std::deque<VerbsChannel> channels_;  // last: what they use outlives them
};

}  // namespace faro::transport::verbs
