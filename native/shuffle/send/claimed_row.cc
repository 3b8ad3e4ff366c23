#include "shuffle/send/claimed_row.h"

#include <utility>

namespace faro::shuffle {

using counters::count;

Outcome ClaimedRow::begin(Destination& to) noexcept {
  to_ = &to;
  lanes_.set_claim(true);
  return Outcome::done;
}

Destination& ClaimedRow::end() noexcept {
  lanes_.set_claim(false);
  return *std::exchange(to_, nullptr);
}

Outcome ClaimedRow::claim_in_frame(Destination& to, size_t bytes, std::span<std::byte>& data) {
  const auto framed = static_cast<uint32_t>(to.stage.framed_bytes(bytes));
  const Outcome outcome = to.lane.make_room(to, framed, WhenFull::overflow);
  if (outcome != Outcome::done) return outcome;
  data = to.lane.claim_row(to, bytes);
  return begin(to);
}

Outcome ClaimedRow::claim_apart(Destination& to, size_t bytes, std::span<std::byte>& data) {
  if (!to.stopped) {
    if (const Outcome outcome = to.lane.prepare_large(to); outcome != Outcome::done) return outcome;
  }
  // With room for a header and a length before the row, in case it is committed small enough for a frame.
  const uint64_t with_room = sizeof(wire::FrameHeader) + sizeof(wire::RowLength) + bytes;
  const Outcome outcome = to.lane.make_queued(to, wire::FrameKind::fragment, with_room, apart_);
  if (outcome != Outcome::done) return outcome;
  data = {apart_->stored.memory, bytes};
  return begin(to);
}

Status ClaimedRow::commit(size_t bytes) {
  Destination& to = end();
  if (is_apart()) return commit_apart(to, bytes);
  if (!to.stopped) {
    to.lane.commit_row(to, bytes);
    return Status::Ok();
  }
  to.lane.unclaim_row(to);
  to.lane.drop_open(to);
  count(to.stage.shuffle.worker().counters.rows_dropped);
  return Status::Ok();
}

Status ClaimedRow::commit_apart(Destination& to, size_t bytes) {
  std::unique_ptr<QueuedFrame> row = std::move(apart_);
  if (to.stopped) {
    count(to.stage.shuffle.worker().counters.rows_dropped);
    return Status::Ok();
  }
  if (!to.lane.is_large(to, bytes)) return to.lane.send_shrunk(std::move(row), bytes);
  to.lane.send_large(std::move(row), bytes);
  return Status::Ok();
}

void ClaimedRow::abort() noexcept {
  if (to_ == nullptr) return;
  Destination& to = end();
  if (is_apart()) {
    apart_.reset();
    return;
  }
  to.lane.unclaim_row(to);
  if (to.stage.shuffle.query()->failed() || to.stopped) to.lane.drop_open(to);
}

}  // namespace faro::shuffle
