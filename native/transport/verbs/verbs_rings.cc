#include "transport/verbs/verbs_rings.h"

#include "base/error.h"
#include "transport/verbs/verbs_link.h"

namespace faro::transport::verbs {

VerbsOutgoing::VerbsOutgoing(VerbsLink& link, MessagedPath& path, uint32_t ring, std::byte* base,
                             uint32_t ring_bytes)
    : MessagedOutgoing(path, ring, base, ring_bytes), link_(link) {}

void VerbsOutgoing::on_broken() {
  link_.fail(base::error(Code::protocol_error, "impossible read position for ring {}", number_));
}

bool VerbsOutgoing::update_free() noexcept {
  const wire::Position completed = completed_.load(std::memory_order_relaxed);
  const wire::Position both = completed < peer_read_ ? completed : peer_read_;
  return both != free() && free_up_to(both);
}

Status VerbsOutgoing::resume(const wire::VerbsProgress& progress) {
  const wire::Position sent = sent_.load(std::memory_order_relaxed);
  const auto [arrived, read] = progress;
  if (arrived > sent || read > arrived || read < peer_read_ ||
      arrived % wire::kFrameAlignment != 0 || read % wire::kFrameAlignment != 0) {
    return base::error(Code::protocol_error,
                       "RESUME of ring {} at {}, read to {}; that was {} and {} was sent", number_,
                       arrived, read, peer_read_, sent);
  }
  sent_.store(arrived, std::memory_order_relaxed);
  completed_.store(arrived, std::memory_order_relaxed);
  noted_ = arrived;
  peer_read_ = read;
  signal_seen_ = 0;
  mark();
  return {};
}

VerbsIncoming::VerbsIncoming(VerbsLink& link, MessagedPath& path, uint32_t ring,
                             const std::byte* base, uint32_t ring_bytes, ring::ReadySet& ready,
                             uint32_t ready_ring)
    : MessagedIncoming(path, ring, base, ring_bytes, ready, ready_ring), link_(link) {}

void VerbsIncoming::on_invalid(const char* why) {
  link_.fail(base::error(Code::protocol_error, "{} in ring {}", why, number_));
}

}  // namespace faro::transport::verbs
