#include "transport/messaged_path.h"

#include <utility>

namespace faro::transport {
namespace {

// What may wait for more to go along: beyond it one call gains little (two packets of the
// loopback's size), and the peer could be idle meanwhile.
constexpr uint64_t kGatherBytes = uint64_t{128} << 10;

// What a read position takes on the wire, about.
constexpr uint64_t kReadBytes = 16;

}  // namespace

// ----------------------------------------------------------------------------------------- path

MessagedPath::MessagedPath(LinkContext& context, std::shared_ptr<DeferredSends> deferred)
    : context_(context),
      deferred_(std::move(deferred)),
      writes_(context.outgoing.ring_count()),
      reads_(context.incoming.ring_count()),
      to_ring_{Numbers(context.incoming.receiver_ends), Numbers(context.workers.size())} {}

void MessagedPath::defer(uint64_t bytes) {
  if (deferred_bytes_.fetch_add(bytes, std::memory_order_seq_cst) + bytes >= kGatherBytes)
    return send_now();  // that was D1 (native/DESIGN.md#memory-orders)
  deferred_->note(context_.reactor->clock().now_ns());
}

void MessagedPath::ring_doorbells() noexcept {
  to_ring_.for_frames.take([this](size_t end) {
    ring::ring_one_for_frames(context_.end(static_cast<uint32_t>(end)).doorbells, to_ring_.turn);
  });
  to_ring_.for_room.take(
      [this](size_t worker) { ring::ring_doorbell(*context_.workers[worker].doorbell); });
}

// ---------------------------------------------------------------------------------- outgoing rings

Claim MessagedOutgoing::claim(uint32_t least_bytes, uint32_t most_bytes) {
  Claim claimed = MirroredOutgoing::claim(least_bytes, most_bytes);
  if (claimed.bytes != 0) [[likely]] {
    MessagedOutgoing::forgo_room();
    return claimed;
  }
  // The claim was C1; see starved_. The peer can only make room by reading what it has.
  starved_.store(1, std::memory_order_seq_cst);  // C2
  path_.send_deferred();
  claimed = MirroredOutgoing::claim(least_bytes, most_bytes);  // C3
  if (claimed.bytes != 0) MessagedOutgoing::forgo_room();
  return claimed;
}

void MessagedOutgoing::post() {
  const wire::Position end = producer_.committed();
  if (end == posted_) return path_.send_deferred();
  mark_posted(end);
  count(counters_->transfers);
  path_.writes_.mark(number_);
  path_.send_now();
}

void MessagedOutgoing::post_soon() {
  const wire::Position end = producer_.committed();
  if (end == posted_) return;
  const uint64_t bytes = end - posted_;
  mark_posted(end);
  count(counters_->transfers);
  path_.writes_.mark(number_);
  path_.defer(bytes);
}

// ---------------------------------------------------------------------------------- incoming rings

// A read position by itself costs as much as a transfer, and perhaps a wake-up at the peer: it goes
// along with the next thing to that peer, whatever that is. It is only deferred, and so sent in
// time, when the peer may be waiting for it. A sender that finds no space (at most half a ring is
// ever needed, ring/producer.h) has used more than half the ring since the last position that it
// knows. So that is
//   - when more than half a ring was released since then. A worker that goes on polling comes to
//     this, or
//   - before the worker waits (flush_releases): when more than half a ring has arrived since then.
//     What has not arrived yet wakes the worker, which flushes again before it waits.

void MessagedIncoming::tell_read(wire::Position read) {
  told_.store(read, std::memory_order_release);
  path_.reads_.mark(number_);
  if (read - told_sent_.load(std::memory_order_relaxed) > consumer_.ring_bytes() / 2) defer_read();
}

void MessagedIncoming::flush_releases() {
  MirroredIncoming::flush_releases();
  const wire::Position sent = told_sent_.load(std::memory_order_relaxed);
  if (told_.load(std::memory_order_relaxed) == sent) return;
  const wire::Position arrived = written_.load(std::memory_order_seq_cst);
  if (arrived - sent > consumer_.ring_bytes() / 2) defer_read();
}

void MessagedIncoming::defer_read() {
  path_.on_read_due();
  path_.defer(kReadBytes);
}

}  // namespace faro::transport
