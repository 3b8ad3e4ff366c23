#include "shuffle/send/stream_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/planted.h"
#include "shuffle/operation/file_warning.h"

namespace faro::shuffle {

using counters::count;
using wire::FrameHeader;
using wire::FrameKind;

Outcome StreamWriter::fail_by_claim(const OutRing& ring) {
  return shuffle_.fail(Code::wrong_state,
                       "worker {} has an open claim for worker {}; commit or abort it first",
                       shuffle_.worker().number, ring.receiver);
}

// --- rows that fit into a frame

Outcome StreamWriter::make_room(OutStream& stream, uint32_t bytes, WhenFull when_full) {
  const Outcome outcome = make_room_in_ring(stream, bytes);
  if (outcome != Outcome::would_wait) return outcome;
  return side_.holds_batches() && when_full == WhenFull::overflow ? open_in_overflow(stream)
                                                                  : side_.blocked_on_room(stream);
}

Outcome StreamWriter::make_room_in_ring(OutStream& stream, uint32_t bytes) {
  if (stream.frame.has_room(bytes)) return Outcome::done;
  OutRing& ring = stream.ring;
  if (ring.is_row_claimed()) return fail_by_claim(ring);
  side_.close_open_frame(ring);
  // `planted` is a constant false, except in the test that plants bugs to see that they are found (base/planted.h).
  if (!ring.queue_empty() && !side_.send_queued(ring) &&
      !base::planted(base::Plant::skipped_overflow))
    return Outcome::would_wait;
  if (!stream.announced) {
    if (const Outcome outcome = announce(stream); outcome != Outcome::done) return outcome;
    if (!ring.queue_empty()) return Outcome::would_wait;
  }
  const base::Settings& settings = shuffle_.worker().settings;
  const auto least = static_cast<uint32_t>(sizeof(FrameHeader)) + bytes;
  const transport::Claim claim =
      side_.claim(ring, least, wire::full_frame_limit(settings.ring_bytes));
  if (claim.bytes == 0) {
    // The receiver can only make room by reading what is there, so it has to get it. With batches held the call goes on
    // in overflow and does not depend on that room.
    if (!side_.holds_batches()) ring.transport->post();
    return Outcome::would_wait;
  }
  // The frame ends where the threshold is reached: the row that finds no room in it closes it, and the transfer starts.
  const uint64_t threshold = settings.threshold_bytes;
  const uint64_t pending = ring.transport->pending_bytes();
  const uint64_t to_threshold = threshold > pending ? threshold - pending : 0;
  stream.frame.open_in_ring(
      claim.data, std::min<uint64_t>(claim.bytes, std::max<uint64_t>(least, to_threshold)));
  side_.frame_opened(stream);
  return Outcome::done;
}

Outcome StreamWriter::open_in_overflow(OutStream& stream) {
  if (!stream.announced) {
    if (const Outcome outcome = announce(stream); outcome != Outcome::done) return outcome;
  }
  const uint32_t limit = stream.ring.transport->frame_limit();
  std::unique_ptr<QueuedFrame> frame;
  if (const Outcome outcome = make_queued(stream, FrameKind::data, limit, frame);
      outcome != Outcome::done)
    return outcome;
  stream.frame.open_in_overflow(std::move(frame), limit);
  side_.frame_opened(stream);
  return Outcome::done;
}

void StreamWriter::write(OutStream& stream, std::span<const std::byte> row) {
  stream.frame.write(row);
  close_if_full(stream, static_cast<uint32_t>(framed_bytes(row.size())));
}

void StreamWriter::close_if_full(OutStream& stream, uint32_t next_bytes) {
  if (!stream.frame.has_room(next_bytes) &&
      shuffle_.worker().settings.threshold_bytes < payload_limit(stream))
    side_.close(stream);
}

// --- rows too large for a frame

Outcome StreamWriter::prepare_large(OutStream& stream) {
  OutRing& ring = stream.ring;
  if (ring.is_row_claimed()) return fail_by_claim(ring);
  side_.close_open_frame(ring);
  // One large row per ring at a time, or the queue would be a way around back-pressure.
  if (!ring.queue_empty() && !side_.send_queued(ring) && !side_.holds_batches())
    return side_.blocked_on_room(stream);
  if (stream.announced) return Outcome::done;
  const Outcome outcome = announce(stream);
  return outcome == Outcome::would_wait ? side_.blocked_on_room(stream) : outcome;
}

void StreamWriter::send_large(std::unique_ptr<QueuedFrame> frame, uint64_t row_bytes) {
  OutStream& stream = *frame->stream;
  // A claim that lies apart leaves the ring to other rows: their frame comes before what is queued.
  side_.close_open_frame(stream.ring);
  frame->row_count = 1;
  frame->row_bytes = row_bytes;
  stream.sent.add(1, row_bytes);
  count(shuffle_.worker().counters.rows_sent);
  side_.enqueue(std::move(frame));
  side_.send_queued(stream.ring);
}

Status StreamWriter::send_shrunk(std::unique_ptr<QueuedFrame> frame, size_t bytes) {
  OutStream& stream = *frame->stream;
  const auto payload = static_cast<uint32_t>(framed_bytes(bytes));
  const Outcome outcome = make_room_in_ring(stream, payload);
  if (outcome == Outcome::failed) return shuffle_.status();
  if (outcome == Outcome::done) {
    write(stream, {frame->stored.memory, bytes});
    return Status::Ok();
  }
  if (base::planted(base::Plant::lost_commit)) {
    const auto attempt = [&] { return make_room(stream, payload, WhenFull::overflow); };
    const Outcome room = shuffle_.operate(attempt, Wait::forever());
    if (room == Outcome::done) write(stream, {frame->stored.memory, bytes});
    return room == Outcome::failed ? shuffle_.status() : Status::Ok();
  }
  // The row becomes a frame in its own memory: room for the header, then the row's length, then the row.
  std::byte* const at = frame->stored.memory + sizeof(FrameHeader);
  std::memmove(at + sizeof(wire::RowLength), frame->stored.memory, bytes);
  const auto length = static_cast<wire::RowLength>(bytes);
  std::memcpy(at, &length, sizeof length);
  shuffle_.worker().overflow.shrink(frame->stored, sizeof(FrameHeader) + payload);
  frame->kind = FrameKind::data;
  frame->row_count = 1;
  frame->payload_bytes = payload;
  stream.sent.add(1, payload);
  count(shuffle_.worker().counters.rows_sent);
  side_.enqueue(std::move(frame));
  return Status::Ok();
}

Outcome StreamWriter::make_queued(OutStream& stream, FrameKind kind, uint64_t bytes,
                                  std::unique_ptr<QueuedFrame>& frame) {
  Overflow& overflow = shuffle_.worker().overflow;
  std::unique_ptr<QueuedFrame> made(new QueuedFrame);
  made->overflow = &overflow;
  if (Status status = overflow.allocate(shuffle_.query()->usage, bytes, made->stored);
      !status.ok()) {
    const Outcome outcome =
        shuffle_.operation().overflow_exhausted(shuffle_.query(), bytes, status);
    return outcome == Outcome::failed ? shuffle_.fail(shuffle_.query()->cause()) : outcome;
  }
  warn_if_in_file(shuffle_.worker(), *shuffle_.query(), shuffle_.spec().stage, made->stored);
  made->kind = kind;
  made->stream = &stream;
  frame = std::move(made);
  return Outcome::done;
}

// --- OPEN and FINISH

Outcome StreamWriter::announce(OutStream& stream) {
  const ShuffleSpec& spec = shuffle_.spec();
  const StageLists& lists = shuffle_.lists();
  const wire::OpenPayload open{
      to_key(shuffle_.query()->id), spec.stage,          spec.row_bytes, lists.digest,
      lists.sender_count,           lists.receiver_count};
  std::string payload(reinterpret_cast<const char*>(&open), sizeof open);
  payload += format_.open_bytes();
  const Outcome outcome = send_control(stream, FrameKind::open, payload);
  if (outcome == Outcome::done) stream.announced = true;
  return outcome;
}

Outcome StreamWriter::finish(OutStream& stream) {
  if (!stream.announced) {
    if (const Outcome outcome = announce(stream); outcome != Outcome::done) return outcome;
  }
  const wire::FinishPayload finish{stream.sent.rows.load(std::memory_order_relaxed)};
  const std::string payload(reinterpret_cast<const char*>(&finish), sizeof finish);
  const Outcome outcome = send_control(stream, FrameKind::finish, payload);
  if (outcome == Outcome::done) stream.finished = true;
  return outcome;
}

// Through the ring, or into its queue. would_wait: no room, and no batch is held.
Outcome StreamWriter::send_control(OutStream& stream, FrameKind kind, const std::string& payload) {
  OutRing& ring = stream.ring;
  const auto length = static_cast<uint32_t>(sizeof(FrameHeader) + payload.size());
  if (ring.queue_empty()) {
    const transport::Claim claim = side_.claim(ring, length, length);
    if (claim.bytes != 0) {
      FrameHeader header{};
      header.length = length;
      header.kind = kind;
      header.slot = stream.slot;
      std::memcpy(claim.data, &header, sizeof header);
      std::memcpy(claim.data + sizeof header, payload.data(), payload.size());
      side_.commit(ring, length);
      return Outcome::done;
    }
    if (!side_.holds_batches()) {
      ring.transport->post();
      return Outcome::would_wait;
    }
  }
  std::unique_ptr<QueuedFrame> frame;
  // If overflow is full, batches are held, and releasing some of them helps.
  if (const Outcome outcome = make_queued(stream, kind, length, frame); outcome != Outcome::done)
    return outcome == Outcome::would_wait ? Outcome::holding : outcome;
  frame->payload_bytes = static_cast<uint32_t>(payload.size());
  std::memcpy(frame->stored.memory + sizeof(FrameHeader), payload.data(), payload.size());
  side_.enqueue(std::move(frame));
  return Outcome::done;
}

}  // namespace faro::shuffle
