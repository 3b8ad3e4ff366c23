#include "shuffle/receive/node_ring.h"

#include <bit>

#include "session/resources.h"
#include "shuffle/receive/node_end.h"
#include "wire/frame.h"

namespace faro::shuffle {

static_assert(sizeof(NodeRing) <= session::kNodeRingBytes);
static_assert(sizeof(RingShare) <= session::kRingShareBytes);

// --- NodeRing

NodeFrame* NodeRing::next() {
  if (unsorted_ != nullptr) return std::exchange(unsorted_, nullptr);
  transport::FrameView view;
  const transport::Next next = carrier_.next(view);
  is_full_.store(next == transport::Next::full, std::memory_order_relaxed);
  if (next != transport::Next::frame) return nullptr;
  const uint32_t place = view.token % kPlaces;
  tokens_[place] = view.token;
  view.token = place;
  frames_[place] = NodeFrame{};
  frames_[place].view = view;
  holders_[place].store(1, std::memory_order_relaxed);
  return &frames_[place];
}

void NodeRing::count_untaken(int more) noexcept {
  untaken_.store(untaken_.load(std::memory_order_relaxed) + static_cast<uint32_t>(more),
                 std::memory_order_relaxed);
}

void NodeRing::settle() {
  for (uint64_t places = released_.exchange(0, std::memory_order_seq_cst); places != 0;
       places &= places - 1)
    carrier_.release(tokens_[std::countr_zero(places)]);
  if (to_tell_.exchange(false, std::memory_order_seq_cst)) tell();
}

void NodeRing::release_later(uint32_t place) noexcept {
  if (!let_go(place)) return;
  released_.fetch_or(uint64_t{1} << place, std::memory_order_seq_cst);
  ask();
}

void NodeRing::tell_later() noexcept {
  to_tell_.store(true, std::memory_order_seq_cst);
  ask();
}

void NodeRing::ask() noexcept { link_.end().settle_later(*this); }

bool NodeRing::may_block_sender() const noexcept {
  const uint64_t unreleased = carrier_.counters().unreleased_bytes.load(std::memory_order_relaxed);
  return is_full() || unreleased > carrier_.memory().size() / 2;
}

// --- RingShare

void RingShare::took(const NodeFrame& frame, uint64_t stage, bool counts) noexcept {
  const uint64_t bytes = wire::padded(frame.view.header.length);
  if (counts) {
    counters::count(counters_->frames_received, 1 + frame.packed.frames);
    counters::count(counters_->bytes_received, bytes + frame.packed.bytes_in_ring);
  }
  if (!frame.is_in_ring()) return;
  unreleased_bytes_ += bytes;
  counters::set(counters_->unreleased_bytes, unreleased_bytes_);
  counters::set(counters_->last_stage, stage);
}

void RingShare::left(const NodeFrame& frame, bool counts) noexcept {
  const uint64_t bytes = wire::padded(frame.view.header.length);
  if (counts) {
    counters::count(counters_->frames_received, -uint64_t{1} - frame.packed.frames);
    counters::count(counters_->bytes_received, -bytes - frame.packed.bytes_in_ring);
  }
  if (!frame.is_in_ring()) return;
  unreleased_bytes_ -= bytes;
  counters::set(counters_->unreleased_bytes, unreleased_bytes_);
}

void RingShare::release(uint32_t token) {
  unreleased_bytes_ -= wire::padded(ring_.frame(token).view.header.length);
  counters::set(counters_->unreleased_bytes, unreleased_bytes_);
  ring_.release_later(token);
}

}  // namespace faro::shuffle
