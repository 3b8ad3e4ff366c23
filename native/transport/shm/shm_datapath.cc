#include "transport/shm/shm_datapath.h"

#include <cassert>
#include <new>
#include <utility>

#include "base/error.h"

namespace faro::transport::shm {

void ShmLinkState::fail(const char* direction, uint32_t ring, const char* why) {
  if (failed.exchange(true, std::memory_order_relaxed) || events == nullptr) return;
  Status cause(Code::protocol_error, "");
  try {
    cause =
        base::error(Code::protocol_error, "shared memory, {} ring {}: {}", direction, ring, why);
  } catch (const std::bad_alloc&) {
    // Without the words.
  }
  events->on_link_failed(cause);
}

ShmOutgoing::ShmOutgoing(const Segment& segment, uint32_t ring,
                         std::span<ring::DoorbellLine* const> doorbells, ShmLinkState& link)
    : MirroredOutgoing(segment.ring(ring), segment.rings().ring_bytes,
                       &segment.read(ring).position),
      link_(link),
      written_(segment.written(ring)),
      ready_word_(segment.ready_word(segment.rings().receiver_of(ring),
                                     segment.rings().index_at_receiver(ring) / 64)),
      ready_bit_(uint64_t{1} << (segment.rings().index_at_receiver(ring) % 64)),
      doorbells_(doorbells),
      ring_(ring) {}

Claim ShmOutgoing::claim(uint32_t least_bytes, uint32_t most_bytes) {
  const Claim claimed = producer_.claim(least_bytes, most_bytes);
  if (claimed.bytes == 0) return claim_starving(least_bytes, most_bytes);
  forgo_room();
  return claimed;
}

void ShmOutgoing::forgo_room() {
  if (!starving_) return;
  starving_ = false;
  written_.starving.store(0, std::memory_order_relaxed);  // late: a needless wake
}

Claim ShmOutgoing::claim_starving(uint32_t least_bytes, uint32_t most_bytes) {
  if (producer_.broken()) {
    on_broken();
    return {};
  }
  if (starving_) return {};  // that claim was C3
  starving_ = true;
  written_.starving.store(1, std::memory_order_seq_cst);  // C2; partner: B2 in tell_read
  return claim(least_bytes, most_bytes);                  // C3; comes here at most once more
}

void ShmOutgoing::post() {
  if (!publish() && !is_quiet_) return;
  is_quiet_ = false;
  if (doorbells_.size() == 1) {
    ring_for_frames(*doorbells_.front());
  } else {
    ring_one_for_frames(doorbells_, turn_);
  }
}

void ShmOutgoing::post_quietly() { is_quiet_ |= publish(); }

bool ShmOutgoing::publish() {
  const wire::Position committed = producer_.committed();
  if (committed == posted_ || link_.stopped()) return false;
  mark_posted(committed);
  count(counters_->transfers);
  written_.position.store(committed, std::memory_order_release);  // partner: Consumer::next
  ready_word_.fetch_or(ready_bit_, std::memory_order_seq_cst);    // R1
  return true;
}

void ShmOutgoing::on_broken() { link_.fail("outgoing", ring_, "impossible read position"); }

ShmIncoming::ShmIncoming(const Segment& segment, uint32_t ring, ring::DoorbellLine* doorbell,
                         ShmLinkState& link)
    : MirroredIncoming(segment.ring(ring), segment.rings().ring_bytes,
                       &segment.written(ring).position),
      link_(link),
      written_(segment.written(ring)),
      read_(segment.read(ring)),
      doorbell_(doorbell),
      ring_(ring) {}

void ShmIncoming::tell_read(wire::Position read) {
  if (link_.stopped()) return;
  read_.position.store(read, std::memory_order_seq_cst);  // B1; partner: C3, Producer::claim
  if (written_.starving.load(std::memory_order_seq_cst) != 0) ring_doorbell(*doorbell_);  // B2
}

void ShmIncoming::on_invalid(const char* why) { link_.fail("incoming", ring_, why); }

ShmLink::ShmLink(Parts parts)
    : state_(parts.events),
      parts_(std::move(parts)),
      outgoing_(parts_.outgoing->rings().ring_count()),
      incoming_(parts_.incoming->rings().ring_count()) {
  const ring::Layout& out = parts_.outgoing->rings();
  const ring::Layout& in = parts_.incoming->rings();
  const std::span<ring::DoorbellLine* const> doorbells(parts_.peer_doorbells);
  // Ends are workers, the node, or all workers and then the node.
  const size_t workers = out.receiver_ends >= doorbells.size() ? doorbells.size() : 0;
  assert(doorbells.size() == in.sender_workers && out.receiver_ends <= doorbells.size() + 1);
  for (uint32_t ring = 0; ring < out.ring_count(); ++ring) {
    const uint32_t end = out.receiver_of(ring);
    outgoing_.emplace_back(*parts_.outgoing, ring,
                           end < workers ? doorbells.subspan(end, 1) : doorbells, state_);
  }
  for (uint32_t ring = 0; ring < in.ring_count(); ++ring) {
    incoming_.emplace_back(*parts_.incoming, ring, parts_.peer_doorbells[in.sender_of(ring)],
                           state_);
  }
}

uint64_t ShmLink::bytes(const ring::Layout& outgoing, const ring::Layout& incoming) noexcept {
  // What the allocator keeps beside objects of cache lines, the objects of segments.
  constexpr uint64_t kBeside = 512;
  return sizeof(ShmLink) + kBeside + outgoing.ring_count() * sizeof(ShmOutgoing) +
         incoming.ring_count() * sizeof(ShmIncoming) +
         incoming.sender_workers * sizeof(ring::DoorbellLine*);
}

void ShmLink::attach_ready(ring::ReadySet& ready, uint32_t first_group, uint32_t end) {
  const SegmentLayout& layout = parts_.incoming->layout();
  for (uint32_t word = 0; word < layout.ready_words(); ++word) {
    ready.set_external(first_group + word, &parts_.incoming->ready_word(end, word),
                       layout.rings_in_ready_word(word));
  }
}

}  // namespace faro::transport::shm
