#include "shuffle/send/claimed_row.h"

#include <utility>

namespace faro::shuffle {

using counters::count;

Outcome ClaimedRow::claim(OutStream& stream, size_t bytes, std::span<std::byte>& data) {
  if (stream.stopped || writer_.is_large(bytes, stream)) {
    if (const Outcome outcome = claim_apart(stream, bytes, data); outcome != Outcome::done)
      return outcome;
  } else {
    const auto framed = static_cast<uint32_t>(writer_.framed_bytes(bytes));
    if (const Outcome outcome = writer_.make_room(stream, framed, WhenFull::overflow);
        outcome != Outcome::done)
      return outcome;
    data = stream.frame.claim(bytes);
  }
  stream_ = &stream;
  side_.set_claim(true);
  return Outcome::done;
}

Outcome ClaimedRow::claim_apart(OutStream& stream, size_t bytes, std::span<std::byte>& data) {
  if (!stream.stopped) {
    if (const Outcome outcome = writer_.prepare_large(stream); outcome != Outcome::done)
      return outcome;
  }
  // With room for a header and a length before the row, in case it is committed small enough for a frame.
  const uint64_t with_room = sizeof(wire::FrameHeader) + sizeof(wire::RowLength) + bytes;
  const Outcome outcome = writer_.make_queued(stream, wire::FrameKind::fragment, with_room, apart_);
  if (outcome == Outcome::done) data = {apart_->stored.memory, bytes};
  return outcome;
}

OutStream& ClaimedRow::end() noexcept {
  side_.set_claim(false);
  return *std::exchange(stream_, nullptr);
}

Status ClaimedRow::commit(size_t bytes) {
  OutStream& stream = end();
  if (is_apart()) return commit_apart(stream, bytes);
  if (stream.stopped) {
    stream.frame.unclaim();
    side_.abandon(stream);
    count(shuffle_.worker().counters.rows_dropped);
    return Status::Ok();
  }
  stream.frame.commit(bytes);
  writer_.close_if_full(stream,
                        static_cast<uint32_t>(writer_.framed_bytes(shuffle_.spec().row_bytes)));
  return Status::Ok();
}

Status ClaimedRow::commit_apart(OutStream& stream, size_t bytes) {
  std::unique_ptr<QueuedFrame> row = std::move(apart_);
  if (stream.stopped) {
    count(shuffle_.worker().counters.rows_dropped);
    return Status::Ok();
  }
  if (!writer_.is_large(bytes, stream)) return writer_.send_shrunk(std::move(row), bytes);
  writer_.send_large(std::move(row), bytes);
  return Status::Ok();
}

void ClaimedRow::abort() noexcept {
  if (!is_open()) return;
  OutStream& stream = end();
  if (is_apart()) {
    apart_.reset();
    return;
  }
  stream.frame.unclaim();
  if (shuffle_.query()->failed() || stream.stopped) side_.abandon(stream);
}

}  // namespace faro::shuffle
