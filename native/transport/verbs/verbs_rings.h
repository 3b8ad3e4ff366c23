// The ends of rings over RDMA. verbs_channel.h says who the poster and the poller are.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "transport/messaged_channel.h"

namespace faro::transport::verbs {

class VerbsLink;

/// The sending end of one ring.
class VerbsOutgoing final : public MessagedOutgoing {
 public:
  VerbsOutgoing(VerbsLink& link, MessagedChannel& channel, uint32_t ring, std::byte* base,
                uint32_t ring_bytes);

 private:
  friend class VerbsChannel;
  void on_broken() override;
  bool update_free() noexcept;

  VerbsLink& link_;

  // The poster's, of its channel.
  uint64_t signal_seen_ = 0;           // VerbsChannel::signals_ when uncovered_from_ was set
  wire::Position uncovered_from_ = 0;  // posted since then, and not covered by a signalled request
  wire::Position noted_ = 0;           // paper order: the last WRITTEN

  // The poller's. completed_ is read by the poster in paper order.
  alignas(64) std::atomic<wire::Position> completed_{0};
  wire::Position peer_read_ = 0;
};

/// The receiving end of one ring.
class VerbsIncoming final : public MessagedIncoming {
 public:
  VerbsIncoming(VerbsLink& link, MessagedChannel& channel, uint32_t ring, const std::byte* base,
                uint32_t ring_bytes, WorkerEnd worker, uint32_t ready_ring);

 private:
  friend class VerbsChannel;
  void on_invalid(const char* why) override;

  VerbsLink& link_;
};

}  // namespace faro::transport::verbs
