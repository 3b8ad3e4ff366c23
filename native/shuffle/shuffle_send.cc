// ShuffleCore, the sending half: frames, claims, large rows, finish.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/planted.h"
#include "shuffle/node_core.h"
#include "shuffle/shuffle_core.h"
#include "transport/mirrored_ring.h"

namespace faro::detail {

using transport::count;
using wire::FrameHeader;
using wire::FrameKind;

// --- frames

uint32_t ShuffleCore::frame_payload_limit() const noexcept {
  return outboxes_[0].lane->ring->frame_limit() - static_cast<uint32_t>(sizeof(FrameHeader));
}

bool ShuffleCore::has_room(uint32_t receiver, uint32_t bytes) const noexcept {
  const OutboxCursor& cursor = cursors_[receiver];
  return static_cast<size_t>(cursor.end - cursor.at) >= bytes;
}

void ShuffleCore::write_row(uint32_t receiver, std::span<const std::byte> row) noexcept {
  OutboxCursor& cursor = cursors_[receiver];
  if (spec_.row_bytes == 0) {
    const auto length = static_cast<wire::RowLength>(row.size());
    std::memcpy(cursor.at, &length, sizeof length);
    cursor.at += sizeof length;
    ++frame_rows_[receiver];
  }
  if (!row.empty()) std::memcpy(cursor.at, row.data(), row.size());
  cursor.at += row.size();
}

void ShuffleCore::close_frame(uint32_t receiver) {
  Outbox& box = outboxes_[receiver];
  OutboxCursor& cursor = cursors_[receiver];
  if (box.frame == nullptr) return;
  const auto length = static_cast<uint32_t>(cursor.at - box.frame);
  const uint32_t payload = length - static_cast<uint32_t>(sizeof(FrameHeader));
  if (payload == 0) {
    abandon_frame(receiver);
    return;
  }
  const uint32_t rows = spec_.row_bytes == 0 ? frame_rows_[receiver] : payload / spec_.row_bytes;
  FrameHeader header{};
  header.length = length;
  header.kind = FrameKind::data;
  header.slot = slot_;
  header.row_count = rows;
  std::memcpy(box.frame, &header, sizeof header);
  box.rows_sent += rows;
  count(worker_.counters().rows_sent, rows);
  OutLane& lane = *box.lane;
  lane.owner = nullptr;
  box.frame = nullptr;
  frame_rows_[receiver] = 0;
  cursor = {};
  if (std::unique_ptr<QueuedFrame> frame = std::move(box.in_overflow)) {
    frame->row_count = rows;
    frame->payload_bytes = payload;
    worker_.node().overflow().shrink(frame->stored, length);
    worker_.enqueue(lane, std::move(frame));
  } else {
    lane.ring->commit(length);
    worker_.frame_committed(lane);
  }
}

// With a threshold below a frame the transfer starts with the row that reaches it.
void ShuffleCore::close_full_frame(uint32_t receiver, uint32_t next_bytes) {
  if (!has_room(receiver, next_bytes) &&
      worker_.node().settings().threshold_bytes < frame_payload_limit())
    close_frame(receiver);
}

// Drops the open frame; its rows never existed.
void ShuffleCore::abandon_frame(uint32_t receiver) noexcept {
  Outbox& box = outboxes_[receiver];
  if (box.frame == nullptr) return;
  cursors_[receiver] = {};
  box.frame = nullptr;
  frame_rows_[receiver] = 0;
  box.lane->owner = nullptr;
  box.in_overflow.reset();
}

Outcome ShuffleCore::make_room(uint32_t receiver, uint32_t bytes, WhenFull when_full) {
  const Outcome outcome = make_room_in_ring(receiver, bytes);
  if (outcome != Outcome::would_wait) return outcome;
  return worker_.held() > 0 && when_full == WhenFull::overflow
             ? open_in_overflow(receiver)
             : worker_.wants_room(*this, receiver);
}

Outcome ShuffleCore::make_room_in_ring(uint32_t receiver, uint32_t bytes) {
  if (has_room(receiver, bytes)) return Outcome::done;
  Outbox& box = outboxes_[receiver];
  OutLane& lane = *box.lane;
  if (lane.claimed) {
    return fail(Code::wrong_state,
                fmt::format("worker {} has an open claim for worker {}; commit or abort it first",
                            worker_.number(), lane.receiver));
  }
  if (lane.owner != nullptr) lane.owner->close_frame(lane.owner_receiver);
  if (!lane.queue_empty() && !worker_.pump(lane) && !base::planted(base::Plant::skipped_overflow))
    return Outcome::would_wait;
  if (!box.opened) {
    if (const Outcome outcome = send_control(receiver, FrameKind::open); outcome != Outcome::done)
      return outcome;
    if (!lane.queue_empty()) return Outcome::would_wait;
  }
  const auto least = static_cast<uint32_t>(sizeof(FrameHeader)) + bytes;
  const uint32_t most = wire::full_frame_limit(worker_.node().settings().ring_bytes);
  transport::Claim claim = lane.ring->claim(least, most);
  if (claim.bytes == 0 && worker_.make_room_in_own_ring(lane))
    claim = lane.ring->claim(least, most);
  if (claim.bytes == 0) {
    // The receiver can only make room by reading what is there.
    if (worker_.held() == 0) lane.ring->post();
    return Outcome::would_wait;
  }
  box.frame = claim.data;
  // Not beyond the threshold: the frame closes, and the transfer starts, when so much is pending.
  const uint64_t threshold = worker_.node().settings().threshold_bytes;
  const uint64_t pending = lane.ring->pending_bytes();
  const uint64_t to_threshold = threshold > pending ? threshold - pending : 0;
  const uint64_t size = std::min<uint64_t>(claim.bytes, std::max<uint64_t>(least, to_threshold));
  cursors_[receiver] = {claim.data + sizeof(FrameHeader), claim.data + size};
  lane.owner = this;
  lane.owner_receiver = receiver;
  worker_.mark_dirty(lane);
  return Outcome::done;
}

Outcome ShuffleCore::open_in_overflow(uint32_t receiver) {
  Outbox& box = outboxes_[receiver];
  OutLane& lane = *box.lane;
  if (!box.opened) {
    if (const Outcome outcome = send_control(receiver, FrameKind::open); outcome != Outcome::done)
      return outcome;
  }
  const uint32_t limit = lane.ring->frame_limit();
  if (const Outcome outcome = make_queued(receiver, FrameKind::data, limit, box.in_overflow);
      outcome != Outcome::done)
    return outcome;
  box.frame = box.in_overflow->stored.memory;
  cursors_[receiver] = {box.frame + sizeof(FrameHeader), box.frame + limit};
  lane.owner = this;
  lane.owner_receiver = receiver;
  worker_.mark_dirty(lane);
  return Outcome::done;
}

Outcome ShuffleCore::send_control(uint32_t receiver, FrameKind kind) {
  Outbox& box = outboxes_[receiver];
  OutLane& lane = *box.lane;
  std::array<std::byte,
             sizeof(wire::OpenPayload) + sizeof(wire::OpenFormat) + wire::kOpenFormatTextLimit>
      payload;
  uint32_t payload_bytes;
  if (kind == FrameKind::open) {
    const wire::OpenPayload open{
        shuffle::to_key(query_->id), spec_.stage,          spec_.row_bytes, lists_.digest,
        lists_.sender_count,         lists_.receiver_count};
    const std::string format = format_.open_bytes();
    std::memcpy(payload.data(), &open, sizeof open);
    std::memcpy(payload.data() + sizeof open, format.data(), format.size());
    payload_bytes = static_cast<uint32_t>(sizeof open + format.size());
  } else {
    const wire::FinishPayload finish{box.rows_sent};
    std::memcpy(payload.data(), &finish, payload_bytes = sizeof finish);
  }
  bool& sent = kind == FrameKind::open ? box.opened : box.finished;
  const auto length = static_cast<uint32_t>(sizeof(FrameHeader)) + payload_bytes;
  if (lane.queue_empty()) {
    transport::Claim claim = lane.ring->claim(length, length);
    if (claim.bytes == 0 && worker_.make_room_in_own_ring(lane))
      claim = lane.ring->claim(length, length);
    if (claim.bytes != 0) {
      FrameHeader header{};
      header.length = length;
      header.kind = kind;
      header.slot = slot_;
      std::memcpy(claim.data, &header, sizeof header);
      std::memcpy(claim.data + sizeof header, payload.data(), payload_bytes);
      lane.ring->commit(length);
      worker_.frame_committed(lane);
      sent = true;
      return Outcome::done;
    }
    if (worker_.held() == 0) {
      lane.ring->post();
      return Outcome::would_wait;
    }
  }
  std::unique_ptr<QueuedFrame> frame;
  // Where overflow is full, batches are held: letting go of some is what helps.
  if (const Outcome outcome = make_queued(receiver, kind, length, frame); outcome != Outcome::done)
    return outcome == Outcome::would_wait ? Outcome::holding : outcome;
  frame->payload_bytes = payload_bytes;
  std::memcpy(frame->stored.memory + sizeof(FrameHeader), payload.data(), payload_bytes);
  worker_.enqueue(lane, std::move(frame));
  sent = true;
  return Outcome::done;
}

Outcome ShuffleCore::make_queued(uint32_t receiver, FrameKind kind, uint64_t bytes,
                                 std::unique_ptr<QueuedFrame>& frame) {
  shuffle::Overflow& overflow = worker_.node().overflow();
  std::unique_ptr<QueuedFrame> made(new QueuedFrame);
  made->overflow = &overflow;
  if (Status status = overflow.allocate(query_->usage, bytes, made->stored); !status.ok()) {
    const Outcome outcome = worker_.overflow_exhausted(query_, bytes, status);
    return outcome == Outcome::failed ? fail(query_->cause()) : outcome;
  }
  made->kind = kind;
  made->slot = slot_;
  made->core = this;
  made->receiver = receiver;
  frame = std::move(made);
  return Outcome::done;
}

// --- sending

Outcome ShuffleCore::send(uint32_t receiver, std::span<const std::byte> row, bool wait,
                          Timeout timeout) noexcept {
  auto attempt = [&] { return attempt_send(receiver, row); };
  return operate(attempt, wait, timeout);
}

Outcome ShuffleCore::send_in_ring(uint32_t receiver, std::span<const std::byte> row, bool wait,
                                  Timeout timeout) noexcept {
  auto attempt = [&] { return attempt_send(receiver, row, WhenFull::nowhere); };
  return operate(attempt, wait, timeout);
}

Outcome ShuffleCore::attempt_send(uint32_t receiver, std::span<const std::byte> row,
                                  WhenFull when_full) {
  const std::span<const uint32_t> one(&receiver, 1);
  return attempt_multicast(one, row, when_full);
}

Outcome ShuffleCore::multicast(std::span<const uint32_t> receivers, std::span<const std::byte> row,
                               bool wait, Timeout timeout) {
  auto attempt = [&] { return attempt_multicast(receivers, row); };
  return operate(attempt, wait, timeout);
}

Outcome ShuffleCore::broadcast(std::span<const std::byte> row, bool wait, Timeout timeout) {
  return multicast(everyone_, row, wait, timeout);
}

// The inlined path stops at a receiver that has stopped; here it is left out.
size_t ShuffleCore::broadcast_into_open_frames(std::span<const std::byte> rows) noexcept {
  if (stopped_count_ == 0 || rows.empty()) return 0;
  size_t fitting = rows.size() / spec_.row_bytes;
  for (uint32_t r = 0; r < receiver_count(); ++r) {
    const auto room = static_cast<size_t>(cursors_[r].end - cursors_[r].at);
    if (!outboxes_[r].stopped) fitting = std::min(fitting, room / spec_.row_bytes);
  }
  for (uint32_t r = 0; r < receiver_count(); ++r) {
    if (outboxes_[r].stopped) {
      count(worker_.counters().rows_dropped, fitting);
    } else if (fitting > 0) {
      std::memcpy(cursors_[r].at, rows.data(), fitting * spec_.row_bytes);
      cursors_[r].at += fitting * spec_.row_bytes;
    }
  }
  return fitting;
}

Outcome ShuffleCore::check_receivers(std::span<const uint32_t> receivers) {
  ++multicasts_;
  for (const uint32_t receiver : receivers) {
    if (receiver >= receiver_count()) {
      return fail(Code::invalid_argument,
                  fmt::format("stage {}: receiver {} does not exist (0 … {})", spec_.stage,
                              receiver, receiver_count() - 1));
    }
    if (std::exchange(named_[receiver], multicasts_) == multicasts_) {
      return fail(Code::invalid_argument,
                  fmt::format("stage {}: receiver {} is named twice", spec_.stage, receiver));
    }
  }
  return Outcome::done;
}

Outcome ShuffleCore::attempt_multicast(std::span<const uint32_t> receivers,
                                       std::span<const std::byte> row, WhenFull when_full) {
  if (const Outcome outcome = check_send(); outcome != Outcome::done) return outcome;
  if (const Outcome outcome = check_receivers(receivers); outcome != Outcome::done) return outcome;
  if (spec_.row_bytes != 0 && row.size() != spec_.row_bytes) {
    return fail(Code::invalid_argument,
                fmt::format("stage {}: a row of {} bytes, but row_bytes = {}", spec_.stage,
                            row.size(), spec_.row_bytes));
  }
  if (row.size() > worker_.node().settings().row_limit_bytes) {
    return fail(Code::row_too_large,
                fmt::format("stage {}: a row of {} bytes is above row.limit_bytes = {}",
                            spec_.stage, row.size(), worker_.node().settings().row_limit_bytes));
  }
  const bool large = framed_bytes(row.size()) > frame_payload_limit();
  const auto bytes = static_cast<uint32_t>(large ? 0 : framed_bytes(row.size()));
  // First room everywhere, then the row everywhere: to all or to none (DESIGN.md HC-7). Room that was
  // made stays.
  for (uint32_t receiver : receivers) {
    if (outboxes_[receiver].stopped) continue;
    const Outcome outcome = large ? prepare_large(receiver) : make_room(receiver, bytes, when_full);
    if (outcome != Outcome::done) return outcome;
  }
  if (large) return send_large(receivers, row);
  for (uint32_t receiver : receivers) {
    Outbox& box = outboxes_[receiver];
    if (box.stopped) {
      count(worker_.counters().rows_dropped);
      continue;
    }
    write_row(receiver, row);
    close_full_frame(receiver, bytes);
  }
  return stopped_count_ == receiver_count() ? Outcome::stopped : Outcome::done;
}

Outcome ShuffleCore::prepare_large(uint32_t receiver) {
  Outbox& box = outboxes_[receiver];
  OutLane& lane = *box.lane;
  if (lane.claimed) {
    return fail(Code::wrong_state,
                fmt::format("worker {} has an open claim for worker {}; commit or abort it first",
                            worker_.number(), lane.receiver));
  }
  if (lane.owner != nullptr) lane.owner->close_frame(lane.owner_receiver);
  // One large row per ring at a time: the queue is not a way around back-pressure.
  if (!lane.queue_empty() && !worker_.pump(lane) && worker_.held() == 0)
    return worker_.wants_room(*this, receiver);
  if (box.opened) return Outcome::done;
  const Outcome outcome = send_control(receiver, FrameKind::open);
  return outcome == Outcome::would_wait ? worker_.wants_room(*this, receiver) : outcome;
}

Outcome ShuffleCore::send_large(std::span<const uint32_t> receivers,
                                std::span<const std::byte> row) {
  // All copies before the first is queued: to all or to none.
  std::vector<std::unique_ptr<QueuedFrame>> copies;
  copies.reserve(receivers.size());
  for (const uint32_t receiver : receivers) {
    if (outboxes_[receiver].stopped) continue;
    std::unique_ptr<QueuedFrame> copy;
    if (const Outcome outcome = make_queued(receiver, FrameKind::fragment, row.size(), copy);
        outcome != Outcome::done)
      return outcome;
    std::memcpy(copy->stored.memory, row.data(), row.size());
    copies.push_back(std::move(copy));
  }
  count(worker_.counters().rows_dropped, receivers.size() - copies.size());
  for (std::unique_ptr<QueuedFrame>& copy : copies) enqueue_large(std::move(copy), row.size());
  return stopped_count_ == receiver_count() ? Outcome::stopped : Outcome::done;
}

void ShuffleCore::enqueue_large(std::unique_ptr<QueuedFrame> frame, uint64_t row_bytes) {
  frame->row_count = 1;
  frame->row_bytes = row_bytes;
  Outbox& box = outboxes_[frame->receiver];
  ++box.rows_sent;
  count(worker_.counters().rows_sent);
  worker_.enqueue(*box.lane, std::move(frame));
  worker_.pump(*box.lane);
}

Outcome ShuffleCore::claim(uint32_t receiver, size_t bytes, std::span<std::byte>& data, bool wait,
                           Timeout timeout) {
  auto attempt = [&] { return attempt_claim(receiver, bytes, data); };
  return operate(attempt, wait, timeout);
}

Outcome ShuffleCore::attempt_claim(uint32_t receiver, size_t bytes, std::span<std::byte>& data) {
  if (const Outcome outcome = check_send(); outcome != Outcome::done) return outcome;
  if (claim_.open || worker_.claim_open) {
    return fail(
        Code::wrong_state,
        fmt::format("worker {} has an open claim; commit or abort it first", worker_.number()));
  }
  if (receiver >= receiver_count()) {
    return fail(Code::invalid_argument, fmt::format("stage {}: receiver {} does not exist (0 … {})",
                                                    spec_.stage, receiver, receiver_count() - 1));
  }
  if (spec_.row_bytes != 0 && bytes != spec_.row_bytes) {
    return fail(Code::invalid_argument,
                fmt::format("stage {}: a claim of {} bytes, but row_bytes = {}", spec_.stage, bytes,
                            spec_.row_bytes));
  }
  if (bytes > worker_.node().settings().row_limit_bytes) {
    return fail(Code::row_too_large,
                fmt::format("stage {}: a claim of {} bytes is above row.limit_bytes = {}",
                            spec_.stage, bytes, worker_.node().settings().row_limit_bytes));
  }
  Outbox& box = outboxes_[receiver];
  if (stopped_count_ == receiver_count()) return Outcome::stopped;
  claim_.receiver = receiver;
  claim_.large = box.stopped || framed_bytes(bytes) > frame_payload_limit();
  if (claim_.large) {  // also where the row will be dropped: it needs memory of its own
    if (!box.stopped) {
      if (const Outcome outcome = prepare_large(receiver); outcome != Outcome::done) return outcome;
    }
    // With room for what stands before the row, should it shrink to a frame's size.
    const uint64_t with_room = sizeof(FrameHeader) + sizeof(wire::RowLength) + bytes;
    if (const Outcome outcome = make_queued(receiver, FrameKind::fragment, with_room, claim_.row);
        outcome != Outcome::done)
      return outcome;
    data = {claim_.row->stored.memory, bytes};
  } else {
    if (const Outcome outcome = make_room(receiver, static_cast<uint32_t>(framed_bytes(bytes)));
        outcome != Outcome::done)
      return outcome;
    data = {cursors_[receiver].at + (framed_bytes(bytes) - bytes), bytes};
    // The inlined path must not write where the claim lies.
    claim_.frame_end = std::exchange(cursors_[receiver].end, cursors_[receiver].at);
    box.lane->claimed = true;
  }
  claim_.open = worker_.claim_open = true;
  claim_exists_ = true;
  return Outcome::done;
}

Status ShuffleCore::commit_claim(std::span<std::byte> data, size_t bytes) {
  return guarded([&] { return commit_open_claim(data, bytes); });
}

Status ShuffleCore::commit_open_claim(std::span<std::byte> data, size_t bytes) {
  if (!claim_.open) return Status(Code::wrong_state, "the claim was committed or aborted before");
  if (bytes > data.size() || (spec_.row_bytes != 0 && bytes != spec_.row_bytes)) {
    return Status(Code::invalid_argument,
                  fmt::format("stage {}: commit of {} bytes of a claim of {}", spec_.stage, bytes,
                              data.size()));
  }
  if (const Outcome outcome = check(); outcome != Outcome::done) {
    abort_claim();
    return status_;
  }
  const uint32_t receiver = claim_.receiver;
  Outbox& box = outboxes_[receiver];
  claim_.open = worker_.claim_open = false;
  if (claim_.large) {
    if (box.stopped) {
      claim_.row.reset();
      count(worker_.counters().rows_dropped);
      return Status::Ok();
    }
    if (framed_bytes(bytes) <= frame_payload_limit()) return commit_shrunk(data.first(bytes));
    enqueue_large(std::move(claim_.row), bytes);
    return Status::Ok();
  }
  box.lane->claimed = false;
  OutboxCursor& cursor = cursors_[receiver];
  cursor.end = claim_.frame_end;
  if (box.stopped) {
    abandon_frame(receiver);
    count(worker_.counters().rows_dropped);
    return Status::Ok();
  }
  if (spec_.row_bytes == 0) {
    const auto length = static_cast<wire::RowLength>(bytes);
    std::memcpy(cursor.at, &length, sizeof length);
    ++frame_rows_[receiver];
  }
  cursor.at += framed_bytes(bytes);
  close_full_frame(receiver, static_cast<uint32_t>(framed_bytes(spec_.row_bytes)));
  return Status::Ok();
}

// Never waits, and needs no memory but the claim's: only so it cannot fail for want of either.
Status ShuffleCore::commit_shrunk(std::span<const std::byte> row) {
  const uint32_t receiver = claim_.receiver;
  std::unique_ptr<QueuedFrame> frame = std::move(claim_.row);
  const auto payload = static_cast<uint32_t>(framed_bytes(row.size()));
  const Outcome outcome = make_room_in_ring(receiver, payload);
  if (outcome == Outcome::failed) return status_;
  if (outcome == Outcome::done) {
    write_row(receiver, row);
    close_full_frame(receiver, payload);
    return Status::Ok();
  }
  if (base::planted(base::Plant::lost_commit)) {
    const Outcome sent = send(receiver, row, true, kNoTimeout);
    return sent == Outcome::failed ? status_ : Status::Ok();
  }
  // As a frame of its own: behind room for the header, the row's length, and the row.
  std::byte* const at = frame->stored.memory + sizeof(FrameHeader);
  std::memmove(at + sizeof(wire::RowLength), row.data(), row.size());
  const auto length = static_cast<wire::RowLength>(row.size());
  std::memcpy(at, &length, sizeof length);
  worker_.node().overflow().shrink(frame->stored, sizeof(FrameHeader) + payload);
  frame->kind = FrameKind::data;
  frame->row_count = 1;
  frame->payload_bytes = payload;
  Outbox& box = outboxes_[receiver];
  ++box.rows_sent;
  count(worker_.counters().rows_sent);
  worker_.enqueue(*box.lane, std::move(frame));
  return Status::Ok();
}

void ShuffleCore::abort_claim() noexcept {
  if (!claim_.open) return;
  claim_.open = worker_.claim_open = false;
  if (claim_.large) {
    claim_.row.reset();
    return;
  }
  Outbox& box = outboxes_[claim_.receiver];
  box.lane->claimed = false;
  cursors_[claim_.receiver].end = claim_.frame_end;
  if (query_->failed() || box.stopped) abandon_frame(claim_.receiver);
}

void ShuffleCore::claim_gone() noexcept {
  abort_claim();
  claim_exists_ = false;
  reference_gone();
}

void ShuffleCore::flush() {
  (void)guarded([&] {
    if (check() == Outcome::done) worker_.flush();
    return Status::Ok();
  });
}

Outcome ShuffleCore::finish(bool wait, Timeout timeout) {
  auto attempt = [&] { return attempt_finish(); };
  return operate(attempt, wait, timeout);
}

Outcome ShuffleCore::attempt_finish() {
  if (const Outcome outcome = check(); outcome != Outcome::done) return outcome;
  if (!is_sender_) return Outcome::done;
  if (claim_.open)
    return fail(Code::wrong_state, fmt::format("stage {}: finish with an open claim", spec_.stage));
  finish_called_ = true;
  bool all = true;
  for (uint32_t r = 0; r < outboxes_.size(); ++r) {
    Outbox& box = outboxes_[r];
    if (box.finished) continue;
    OutLane& lane = *box.lane;
    // Another shuffle's open claim on this ring: its frame cannot be closed now.
    if (lane.claimed)
      return fail(Code::wrong_state,
                  fmt::format("worker {} has an open claim for worker {}; commit or abort it first",
                              worker_.number(), lane.receiver));
    if (lane.owner != nullptr) lane.owner->close_frame(lane.owner_receiver);
    if (!lane.queue_empty()) worker_.pump(lane);
    Outcome outcome = Outcome::done;
    if (!lane.queue_empty() && worker_.held() == 0) outcome = Outcome::would_wait;
    if (outcome == Outcome::done && !box.opened) outcome = send_control(r, FrameKind::open);
    if (outcome == Outcome::done) outcome = send_control(r, FrameKind::finish);
    if (outcome == Outcome::done) {
      lane.ring->post_soon();  // along with that of the next receiver, if both are on one node
      ++finished_count_;
    } else if (outcome == Outcome::would_wait) {
      (void)worker_.wants_room(*this, r);
      all = false;  // the others' receivers need not wait for this one
    } else {
      return outcome;
    }
  }
  worker_.node().membership().flush_network();
  if (queued_ > 0) worker_.pump_all();
  if (queued_ > 0) return worker_.wants_queues_sent(*query_);
  if (!all) return Outcome::would_wait;
  finish_done_ = true;
  return Outcome::done;
}

void ShuffleCore::receivers_stopped(const std::vector<uint32_t>& workers) {
  for (uint32_t worker : workers) {
    const auto it = std::find(spec_.receivers.begin(), spec_.receivers.end(), worker);
    if (it == spec_.receivers.end()) continue;
    const auto r = static_cast<uint32_t>(it - spec_.receivers.begin());
    Outbox& box = outboxes_[r];
    if (box.stopped) continue;
    box.stopped = true;
    ++stopped_count_;
    if (claim_.open && claim_.receiver == r) continue;  // settled by commit or abort
    if (box.frame != nullptr) {
      const auto payload = static_cast<uint64_t>(cursors_[r].at - box.frame) - sizeof(FrameHeader);
      count(worker_.counters().rows_dropped,
            spec_.row_bytes == 0 ? frame_rows_[r] : payload / spec_.row_bytes);
      abandon_frame(r);
    }
    worker_.drop_queued(*box.lane, *this, true);
  }
}

void ShuffleCore::dropped(uint32_t receiver, uint64_t rows) noexcept {
  outboxes_[receiver].rows_sent -= rows;
  count(worker_.counters().rows_dropped, rows);
}

}  // namespace faro::detail
