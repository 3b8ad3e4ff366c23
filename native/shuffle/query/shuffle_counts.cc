#include "shuffle/query/shuffle_counts.h"

#include <utility>

namespace faro::shuffle {
namespace {

uint64_t read(const counters::Counter& counter) noexcept {
  return counter.load(std::memory_order_relaxed);
}

}  // namespace

ShuffleCounts::ShuffleCounts(const ShuffleSpec& spec, uint32_t worker, uint32_t receiver_count,
                             std::shared_ptr<const ReceivedBySender> received)
    : query_(spec.query),
      stage_(spec.stage),
      worker_(worker),
      receiver_count_(receiver_count),
      sent_(receiver_count > 0 ? new SentCounts[receiver_count] : nullptr),
      received_(std::move(received)) {
  if (received_ != nullptr) senders_ = spec.senders;
}

ShuffleMetrics ShuffleCounts::metrics() const {
  ShuffleMetrics told;
  told.query = query_;
  told.stage = stage_;
  told.worker = worker_;
  told.blocked_on_room = read(on_room.calls);
  told.blocked_on_room_ns = read(on_room.ns);
  told.blocked_on_rows = read(on_rows.calls);
  told.blocked_on_rows_ns = read(on_rows.ns);
  told.sent.reserve(receiver_count_);
  for (uint32_t r = 0; r < receiver_count_; ++r) {
    const SentCounts& sent = sent_[r];
    told.sent.push_back({r, read(sent.rows), read(sent.bytes), read(sent.frames),
                         read(sent.no_room), read(sent.rows_out_overflow),
                         read(sent.bytes_out_overflow)});
  }
  told.received.reserve(senders_.size());
  for (uint32_t sender = 0; sender < senders_.size(); ++sender) {
    static const ReceivedCounts kNothing;
    const ReceivedCounts* const counted = received_->find(senders_[sender]);
    const ReceivedCounts& received = counted == nullptr ? kNothing : *counted;
    told.received.push_back({sender, read(received.rows), read(received.bytes),
                             read(received.batches), read(received.rows_spilled),
                             read(received.bytes_spilled)});
  }
  return told;
}

std::vector<ShuffleMetrics> QueryShuffles::metrics() const {
  std::vector<std::shared_ptr<const ShuffleCounts>> shuffles;
  {
    const std::lock_guard lock(mutex_);
    shuffles = shuffles_;
  }
  std::vector<ShuffleMetrics> told;
  told.reserve(shuffles.size());
  for (const auto& counts : shuffles) told.push_back(counts->metrics());
  return told;
}

}  // namespace faro::shuffle
