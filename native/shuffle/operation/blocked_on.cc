#include "shuffle/operation/blocked_on.h"

#include <bit>

namespace faro::shuffle {

using counters::WaitKind;

Outcome BlockedOn::rows(ShuffleCounts& shuffle, uint64_t sender,
                        const AwaitedSenders& senders) noexcept {
  wait_ = {WaitKind::rows, 0, shuffle.query(), shuffle.stage(), sender};
  senders_ = &senders;
  shuffle_ = &shuffle;
  side_ = &ShuffleCounts::on_rows;
  return Outcome::would_wait;
}

Outcome BlockedOn::room(ShuffleCounts& shuffle, uint32_t receiver_worker) noexcept {
  wait_ = {WaitKind::room, 0, shuffle.query(), shuffle.stage(), receiver_worker};
  shuffle_ = &shuffle;
  side_ = &ShuffleCounts::on_room;
  return Outcome::would_wait;
}

Outcome BlockedOn::outcome_of(const QueryId& query) noexcept {
  wait_ = {WaitKind::outcome, 0, query};
  return Outcome::would_wait;
}

Outcome BlockedOn::condition() noexcept {
  wait_ = {WaitKind::condition, 0, {}};
  return Outcome::would_wait;
}

Outcome BlockedOn::overflow(const QueryId& query) noexcept {
  wait_ = {WaitKind::overflow, 0, query};
  return Outcome::would_wait;
}

void BlockedOn::publish(base::Nanoseconds since, bool in_call) noexcept {
  wait_.since_ns = since;
  wait_.in_call = in_call ? 1 : 0;
  if (wait_.kind == WaitKind::rows) publish_awaited();
  worker_.membership.counters().wait(worker_.local_index).store(wait_);
  published_ = true;
}

void BlockedOn::publish_awaited() noexcept {
  const std::span<counters::Counter> words =
      worker_.membership.counters().awaited(worker_.local_index);
  const uint32_t worker_count = worker_.membership.worker_count();
  wait_.awaited_count = 0;
  for (size_t w = 0; w < words.size(); ++w) {
    uint64_t bits = 0;
    for (uint32_t bit = 0; bit < 64 && w * 64 + bit < worker_count; ++bit) {
      const auto sender = static_cast<uint32_t>(w * 64 + bit);
      const bool is_polled = wait_.peer == counters::kAnyPeer || wait_.peer == sender;
      if (is_polled && senders_->awaits(sender)) bits |= uint64_t{1} << bit;
    }
    words[w].store(bits, std::memory_order_relaxed);
    wait_.awaited_count += static_cast<uint64_t>(std::popcount(bits));
  }
}

std::shared_ptr<BlockedCounts> BlockedOn::count() noexcept {
  if (shuffle_ == nullptr) return nullptr;
  BlockedCounts& blocked = shuffle_->*side_;
  counters::count(blocked.calls);
  return {shuffle_->shared_from_this(), &blocked};
}

void BlockedOn::withdraw() noexcept {
  worker_.membership.counters().wait(worker_.local_index).store({});
  published_ = false;
}

}  // namespace faro::shuffle
