#include "transport/verbs/verbs_link.h"

#include <utility>

#include "base/return_if_error.h"

namespace faro::transport::verbs {

VerbsLink::VerbsLink(LinkContext& context, const std::shared_ptr<CompletionPoller>& poller,
                     const std::shared_ptr<DeferredSends>& deferred, LinkParts parts)
    : context_(context),
      poller_(poller),
      deferred_(deferred),
      parts_(std::move(parts)),
      capabilities_{.name = "verbs"},
      outgoing_code_(context.outgoing),
      incoming_code_(context.incoming) {
  for (ChannelParts& channel : std::exchange(parts_.channels, {}))
    channels_.emplace_back(*this, static_cast<uint32_t>(channels_.size()), std::move(channel));
  const ring::Layout& out = context.outgoing;
  const ring::Layout& in = context.incoming;
  const ChannelMap map(parts_.sharing, out, in);
  for (uint32_t r = 0; r < out.ring_count(); ++r) {
    outgoing_.emplace_back(*this, channels_[map.of_outgoing(r)], r,
                           parts_.outgoing.base() + out.base_offset(r), out.ring_bytes);
  }
  for (uint32_t r = 0; r < in.ring_count(); ++r) {
    incoming_.emplace_back(*this, channels_[map.of_incoming(r)], r,
                           parts_.incoming.base() + in.base_offset(r), in.ring_bytes,
                           context.workers[in.receiver_of(r)], ready_ring_of(context, r));
  }
}

VerbsLink::~VerbsLink() { stop(); }

Status VerbsLink::start() {
  for (VerbsChannel& channel : channels_) FARO_RETURN_IF_ERROR(channel.start());
  return {};
}

void VerbsLink::add_counters(LinkCounters& sum) const {
  for (const VerbsChannel& channel : channels_) channel.counters().add_to(sum);
}

void VerbsLink::fail(const Status& cause) {
  if (end()) context_.events->on_link_failed(cause);
}

// True for the caller that ended the link.
bool VerbsLink::end() noexcept {
  if (stopped_.exchange(true, std::memory_order_acq_rel)) return false;
  for (VerbsChannel& channel : channels_) channel.disconnect();
  return true;
}

}  // namespace faro::transport::verbs
