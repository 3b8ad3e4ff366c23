#include "shuffle/operation/blocked_on.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace faro::shuffle {

using counters::WaitKind;

Outcome BlockedOn::rows(ShuffleCounts& shuffle, uint64_t sender,
                        const AwaitedSenders& senders) noexcept {
  last_ = {{WaitKind::rows, 0, shuffle.query(), shuffle.stage(), sender},
           &senders,
           &shuffle,
           &ShuffleCounts::on_rows};
  return Outcome::would_wait;
}

Outcome BlockedOn::room(ShuffleCounts& shuffle, uint32_t receiver_worker, bool at_node) noexcept {
  last_ = {{WaitKind::room, 0, shuffle.query(), shuffle.stage(), receiver_worker, at_node},
           nullptr,
           &shuffle,
           &ShuffleCounts::on_room};
  return Outcome::would_wait;
}

Outcome BlockedOn::outcome_of(const QueryId& query) noexcept {
  last_.wait = {WaitKind::outcome, 0, query};
  return Outcome::would_wait;
}

Outcome BlockedOn::condition() noexcept {
  last_.wait = {WaitKind::condition, 0, {}};
  return Outcome::would_wait;
}

Outcome BlockedOn::overflow(const QueryId& query) noexcept {
  last_.wait = {WaitKind::overflow, 0, query};
  return Outcome::would_wait;
}

void BlockedOn::collect() noexcept {
  const counters::WaitRecord& wait = last_.wait;
  if (wait.kind == WaitKind::none || wait.kind == WaitKind::condition) return;
  const std::span known(collected_.data(), collected_count_);
  const bool is_known = std::ranges::any_of(known, [&](const Met& met) {
    return met.wait.kind == wait.kind && met.wait.query == wait.query &&
           met.wait.stage == wait.stage && met.wait.peer == wait.peer;
  });
  if (is_known) return;
  if (collected_count_ == collected_.size()) {
    ++collected_too_many_;
  } else {
    collected_[collected_count_++] = last_;
  }
}

void BlockedOn::forget(const ShuffleCounts& shuffle) noexcept {
  if (last_.shuffle == &shuffle) nothing();
  const auto begin = collected_.begin();
  const auto end = begin + static_cast<ptrdiff_t>(collected_count_);
  const auto rest = std::remove_if(begin, end, [&](const Met& m) { return m.shuffle == &shuffle; });
  collected_count_ = static_cast<size_t>(rest - begin);
}

std::span<const BlockedOn::Met> BlockedOn::what() const noexcept {
  if (last_.wait.kind != WaitKind::condition || collected_count_ == 0) return {&last_, 1};
  return {collected_.data(), collected_count_};
}

std::span<BlockedOn::Met> BlockedOn::what() noexcept {
  const std::span<const Met> all = std::as_const(*this).what();
  return {const_cast<Met*>(all.data()), all.size()};
}

bool BlockedOn::is_on_room_alone() const noexcept {
  const std::span<const Met> all = what();
  const bool is_all = all.data() == &last_ || collected_too_many_ == 0;
  return is_all &&
         std::ranges::all_of(all, [](const Met& met) { return met.wait.kind == WaitKind::room; });
}

template <typename Is>
bool BlockedOn::is_on_room(const Is& is) const noexcept {
  return std::ranges::any_of(
      what(), [&](const Met& met) { return met.wait.kind == WaitKind::room && is(met.wait); });
}

bool BlockedOn::is_on_room_of(const QueryId& query) const noexcept {
  return is_on_room([&](const counters::WaitRecord& wait) { return wait.query == query; });
}

bool BlockedOn::is_on_room_of(const QueryId& query, uint32_t stage) const noexcept {
  return is_on_room(
      [&](const counters::WaitRecord& wait) { return wait.query == query && wait.stage == stage; });
}

bool BlockedOn::is_on_room_at(uint32_t receiver_worker) const noexcept {
  return is_on_room([&](const counters::WaitRecord& wait) { return wait.peer == receiver_worker; });
}

void BlockedOn::publish(base::Nanoseconds since, base::Nanoseconds due) noexcept {
  const std::span<Met> all = what();
  for (Met& met : all) {
    met.wait.since_ns = since;
    met.wait.in_call = due != 0 ? 1 : 0;
    met.wait.due_ns = due;
  }
  all.front().wait.further = all.data() == &last_ ? 0 : collected_too_many_;
  uint32_t slot = 0;
  for (Met& met : all) publish_slot(slot++, met);
  if (slot < counters::kWaitSlots)
    worker_.membership.counters().wait(worker_.local_index, slot).store({});
  published_ = true;
}

void BlockedOn::publish_slot(uint32_t slot, Met& met) noexcept {
  counters::CounterFile& file = worker_.membership.counters();
  if (met.wait.kind == WaitKind::rows) {
    const std::span<counters::Counter> words = file.awaited(worker_.local_index, slot);
    const uint32_t worker_count = worker_.membership.worker_count();
    met.wait.awaited_count = 0;
    for (size_t w = 0; w < words.size(); ++w) {
      uint64_t bits = 0;
      for (uint32_t bit = 0; bit < 64 && w * 64 + bit < worker_count; ++bit) {
        const auto sender = static_cast<uint32_t>(w * 64 + bit);
        const bool is_polled = met.wait.peer == counters::kAnyPeer || met.wait.peer == sender;
        if (is_polled && met.senders->awaits(sender)) bits |= uint64_t{1} << bit;
      }
      words[w].store(bits, std::memory_order_relaxed);
      met.wait.awaited_count += static_cast<uint64_t>(std::popcount(bits));
    }
  }
  file.wait(worker_.local_index, slot).store(met.wait);
}

void BlockedOn::count() noexcept {
  if (last_.shuffle != nullptr) counters::count((last_.shuffle->*last_.side).calls);
}

std::shared_ptr<BlockedCounts> BlockedOn::shared_counts() noexcept {
  if (last_.shuffle == nullptr) return nullptr;
  return {last_.shuffle->shared_from_this(), &(last_.shuffle->*last_.side)};
}

void BlockedOn::withdraw() noexcept {
  worker_.membership.counters().wait(worker_.local_index, 0).store({});
  published_ = false;
}

}  // namespace faro::shuffle
