// The ends of rings over RDMA. verbs_path.h says who the poster and the poller are.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "transport/messaged_path.h"
#include "wire/verbs_message.h"

namespace faro::transport::verbs {

class VerbsLink;

/// The sending end of one ring.
class VerbsOutgoing final : public MessagedOutgoing {
 public:
  VerbsOutgoing(VerbsLink& link, MessagedPath& path, uint32_t ring, std::byte* base,
                uint32_t ring_bytes);

  /// The next transfer begins where the peer is. Nothing of the ring is under way, and only its worker uses it meanwhile.
  /// Errors: protocol_error. Threads: poster and poller in one.
  Status resume(const wire::VerbsProgress& progress);
  /// Before it resumes: what was posted. Threads: poster.
  wire::Position sent() const noexcept { return sent_.load(std::memory_order_relaxed); }
  /// Frees what the peer has read and the device has sent. Returns whether the worker waits for that. Threads: poller.
  bool update_free() noexcept;

 private:
  friend class VerbsPath;
  void on_broken() override;

  VerbsLink& link_;

  // The poster's, of its path.
  uint64_t signal_seen_ = 0;           // VerbsPath::signals_ when uncovered_from_ was set
  wire::Position uncovered_from_ = 0;  // posted since then, and not covered by a signalled request
  wire::Position noted_ = 0;           // paper order: the last WRITTEN

  // The poller's. completed_ is read by the poster in paper order.
  alignas(64) std::atomic<wire::Position> completed_{0};
  wire::Position peer_read_ = 0;
};

/// The receiving end of one ring.
class VerbsIncoming final : public MessagedIncoming {
 public:
  VerbsIncoming(VerbsLink& link, MessagedPath& path, uint32_t ring, const std::byte* base,
                uint32_t ring_bytes, ring::ReadySet& ready, uint32_t ready_ring);

  /// How far it is, as the peer is told from now on. Nothing arrives meanwhile. Threads: poster.
  wire::VerbsProgress progress() noexcept {
    const wire::Position read = take_told_again();
    return {written(), read};
  }
  /// What has come. Threads: poller.
  wire::Position position() const noexcept { return written(); }

 private:
  friend class VerbsPath;
  void on_invalid(const char* why) override;

  VerbsLink& link_;
};

}  // namespace faro::transport::verbs
