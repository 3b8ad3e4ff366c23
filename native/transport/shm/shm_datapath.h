// The data path of shared memory: the sender writes into the receiver's ring itself, so a transfer
// is one store.
//
//   sender                                        receiver
//   frames into the ring
//   WrittenLine.position   release  ------------> seq_cst load in Consumer::next
//   ready word             seq_cst RMW  --------> taken by the worker (R1, S2)
//   doorbell line          if it sleeps
//
//   claim                  seq_cst load <-------- ReadLine.position   seq_cst store
//   WrittenLine.starving   seq_cst  ------------> doorbell line, if starving and asleep
//
// A read position concerns a sleeping sender only if it waits for space; a worker that waits for rows is not woken for
// it. Hence `starving`, and the steps C1 to C3 of the sender, B1 and B2 of the receiver. native/DESIGN.md#memory-orders
// defines all these labels and says why no wake-up is lost.
//
// No lock, no allocation, and no system call except the wake of a sleeper.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/fixed_array.h"
#include "faro/status.h"
#include "ring/doorbell.h"
#include "transport/mirrored_ring.h"
#include "transport/shm/segment.h"
#include "transport/transport.h"

namespace faro::transport::shm {

/// What the rings of one link share.
struct alignas(64) ShmLinkState {
  explicit ShmLinkState(LinkEvents* link_events) : events(link_events) {}

  /// Reports the failure, once. Threads: any.
  void fail(const char* direction, uint32_t ring, const char* why);
  /// Relaxed: a hint that takes effect soon. A post that runs beside stop() may still finish:
  /// memory is valid until destruction.
  bool stopped() const noexcept { return stop.load(std::memory_order_relaxed); }

  std::atomic<bool> stop{false};
  std::atomic<bool> failed{false};
  LinkEvents* const events;  // may be null
};

class ShmOutgoing final : public MirroredOutgoing {
 public:
  /// `doorbells`: the receiving worker's, or those of all workers of the receiving node; they outlive it.
  ShmOutgoing(const Segment& segment, uint32_t ring, std::span<ring::DoorbellLine* const> doorbells,
              ShmLinkState& link);

  Claim claim(uint32_t least_bytes, uint32_t most_bytes) override;
  void post() override;
  void post_quietly() override;
  void forgo_room() override;

 protected:
  void on_broken() override;

 private:
  bool publish();
  Claim claim_starving(uint32_t least_bytes, uint32_t most_bytes);

  // Constant after construction.
  ShmLinkState& link_;
  WrittenLine& written_;
  std::atomic<uint64_t>& ready_word_;
  const uint64_t ready_bit_;
  const std::span<ring::DoorbellLine* const> doorbells_;
  const uint32_t ring_;

  uint32_t turn_ = 0;      // which of several doorbells is rung
  bool starving_ = false;  // what this side last wrote there
  bool is_quiet_ = false;  // something was published that the receiver was not woken for
};

class alignas(64) ShmIncoming final : public MirroredIncoming {
 public:
  /// `doorbell`: the sending worker's.
  ShmIncoming(const Segment& segment, uint32_t ring, ring::DoorbellLine* doorbell,
              ShmLinkState& link);

  Next next(FrameView& view) override {
    return link_.stopped() ? Next::nothing : MirroredIncoming::next(view);
  }

 protected:
  void tell_read(wire::Position read) override;
  void on_invalid(const char* why) override;

 private:
  ShmLinkState& link_;
  WrittenLine& written_;
  ReadLine& read_;
  ring::DoorbellLine* const doorbell_;
  const uint32_t ring_;
};

/// A link whose rings lie in two segments (the local link: twice the same).
/// Owns: both segments and the mapping of the peer's doorbells.
class ShmLink final : public DataLink {
 public:
  struct Parts {
    Capabilities capabilities;
    std::shared_ptr<const Segment> outgoing;
    std::shared_ptr<const Segment> incoming;
    Mapping peer_doorbell_memory;                     // may be empty
    std::vector<ring::DoorbellLine*> peer_doorbells;  // one per worker of the peer
    LinkEvents* events = nullptr;                     // outlives the link; may be null
  };
  explicit ShmLink(Parts parts);
  /// What a link takes beside its segments.
  static uint64_t bytes(const ring::Layout& outgoing, const ring::Layout& incoming) noexcept;

  const Capabilities& capabilities() const override { return parts_.capabilities; }
  Outgoing& outgoing(uint32_t ring) override { return outgoing_[ring]; }
  Incoming& incoming(uint32_t ring) override { return incoming_[ring]; }
  void attach_ready(ring::ReadySet& ready, uint32_t first_group, uint32_t end) override;
  void stop() noexcept override { state_.stop.store(true, std::memory_order_relaxed); }

 private:
  ShmLinkState state_;
  Parts parts_;
  // Rings are not movable, and their addresses are given out.
  base::FixedArray<ShmOutgoing> outgoing_;
  base::FixedArray<ShmIncoming> incoming_;
};

}  // namespace faro::transport::shm
