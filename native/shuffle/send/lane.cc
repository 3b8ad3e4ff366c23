#include "shuffle/send/lane.h"

#include <algorithm>
#include <cstring>

#include "base/planted.h"
#include "session/resources.h"
#include "shuffle/operation/file_warning.h"
#include "shuffle/send/lanes.h"

namespace faro::shuffle {

// With its place in the list of lanes to flush.
static_assert(sizeof(Lane) + sizeof(void*) <= session::kOutgoingLaneRingBytes);

using counters::count;
using wire::FrameHeader;
using wire::FrameKind;

namespace {

// Whether a frame that ends there is the last before the end of the ring. The next one, at its start, can be a full one if
// nothing is pending, and so can those behind it: a frame that was cut short, by a flush, makes others short only until here.
bool is_last(const transport::Outgoing& ring, const std::byte* end) noexcept {
  const std::span<const std::byte> memory = ring.memory();
  return memory.data() + memory.size() - end < static_cast<ptrdiff_t>(ring.frame_limit() / 2);
}

}  // namespace

Outcome Destination::fail_by_claim() {
  return stage.side.fail(Code::wrong_state,
                         "worker {} has an open claim for worker {}; commit or abort it first",
                         stage.shuffle.worker().number, lane.open_->receiver);
}

Lane::Lane(Lanes& lanes, uint32_t receiver, bool is_to_node) noexcept
    : lanes_(lanes), counters_(&lanes.unlinked_), receiver_(receiver), is_to_node_(is_to_node) {}

uint32_t Lane::payload_limit() const noexcept {
  return lanes_.frame_limit() - static_cast<uint32_t>(sizeof(FrameHeader));
}

// --- the open frame

Outcome Lane::make_room(Destination& to, uint32_t bytes, WhenFull when_full) {
  const Outcome outcome = make_room_in_ring(to, bytes);
  if (outcome != Outcome::would_wait) return outcome;
  return lanes_.holds_batches() && when_full == WhenFull::overflow ? open_in_overflow(to)
                                                                   : blocked(to);
}

// would_wait: no room in the ring, or rows are queued for it.
Outcome Lane::make_room_in_ring(Destination& to, uint32_t bytes) {
  if (to.rows_.has_room(bytes)) return Outcome::done;
  if (is_row_claimed()) return to.fail_by_claim();
  close();
  // `planted` is a constant false, except in the test that plants bugs to see that they are found (base/planted.h).
  if (!send_queued() && !base::planted(base::Plant::skipped_overflow)) return Outcome::would_wait;
  if (!to.announced_) {
    if (const Outcome outcome = announce(to); outcome != Outcome::done) return outcome;
    if (has_queued()) return Outcome::would_wait;
  }
  const auto least = static_cast<uint32_t>(sizeof(FrameHeader)) + bytes;
  const transport::Claim place = claim(least, ring_->full_frame_limit());
  if (place.bytes == 0) {
    // The receiver can only make room by reading what is there, so it has to get it. With batches held the call goes on
    // in overflow and does not depend on that room.
    if (!lanes_.holds_batches()) ring_->post();
    return Outcome::would_wait;
  }
  // The frame ends where the threshold is reached: the row that finds no room in it closes it, and the transfer starts.
  const uint64_t threshold = lanes_.worker_.settings.threshold_bytes;
  const uint64_t pending = ring_->pending_bytes();
  const uint64_t to_threshold = threshold > pending ? threshold - pending : 0;
  open_frame(to, place.data,
             std::min<uint64_t>(place.bytes, std::max<uint64_t>(least, to_threshold)));
  return Outcome::done;
}

Outcome Lane::open_in_overflow(Destination& to) {
  if (!to.announced_) {
    if (const Outcome outcome = announce(to); outcome != Outcome::done) return outcome;
  }
  const uint32_t limit = lanes_.frame_limit();
  if (const Outcome outcome = make_queued(to, FrameKind::data, limit, in_overflow_);
      outcome != Outcome::done)
    return outcome;
  open_frame(to, in_overflow_->stored.memory, limit);
  return Outcome::done;
}

// In `bytes` bytes at `begin`, the header included.
void Lane::open_frame(Destination& to, std::byte* begin, uint64_t bytes) {
  open_ = &to;
  begin_ = begin;
  to.rows_.open(begin, bytes);
  lanes_.list(*this);
}

void Lane::close() {
  if (open_ == nullptr) return;
  Destination& to = *open_;
  const uint32_t payload = to.rows_.payload_from(begin_);
  if (payload == 0) return forget_frame();
  const auto length = static_cast<uint32_t>(sizeof(FrameHeader)) + payload;
  const uint32_t rows = to.rows_.rows_in(payload);
  wire::store_header(begin_, {length, FrameKind::data, 0, to.slot, rows, 0});
  std::unique_ptr<QueuedFrame> queued = std::move(in_overflow_);
  const std::byte* const end = begin_ + wire::padded(length);
  forget_frame();
  to.sent.add(rows, payload);
  count(lanes_.worker_.counters.rows_sent, rows);
  if (queued == nullptr) return commit(length, end);
  queued->row_count = rows;
  queued->payload_bytes = payload;
  lanes_.worker_.overflow.shrink(queued->stored, length);
  enqueue(std::move(queued));
}

void Lane::forget_frame() noexcept {
  open_->rows_.close();
  open_ = nullptr;
  begin_ = nullptr;
  in_overflow_.reset();
}

uint32_t Lane::drop_open(Destination& to) noexcept {
  if (open_ != &to) return 0;
  const uint32_t rows = to.rows_.rows_in(to.rows_.payload_from(begin_));
  forget_frame();
  return rows;
}

// The frame of `to` is open. Rows of the inlined path do not get here: the next call that is not inlined closes their frame.
void Lane::close_if_full(Destination& to, uint64_t next_bytes) {
  if (!to.rows_.has_room(next_bytes) && lanes_.worker_.settings.threshold_bytes < payload_limit())
    close();
}

// --- rows

void Lane::write(Destination& to, const RowPieces& row) {
  to.rows_.append(row);
  close_if_full(to, to.stage.framed_bytes(row.bytes()));
}

std::span<std::byte> Lane::claim_row(Destination& to, size_t bytes) noexcept {
  return to.rows_.claim(bytes);
}

void Lane::commit_row(Destination& to, size_t bytes) {
  to.rows_.commit(bytes);
  close_if_full(to, to.stage.framed_bytes(to.stage.shuffle.spec().row_bytes));
}

void Lane::unclaim_row(Destination& to) noexcept { to.rows_.unclaim(); }

// --- whole frames

Outcome Lane::send_copy(Destination& to, const WholeFrame& frame, WhenFull when_full) {
  if (is_row_claimed()) return Outcome::would_wait;
  close();
  const auto length = static_cast<uint32_t>(frame.bytes.size());
  const transport::Claim place = send_queued() ? claim(length, length) : transport::Claim();
  std::unique_ptr<QueuedFrame> queued;
  if (place.bytes == 0) {
    if (!lanes_.holds_batches()) ring_->post();
    if (!lanes_.holds_batches() || when_full == WhenFull::nowhere) return Outcome::would_wait;
    const Outcome outcome = make_queued(to, FrameKind::data, length, queued);
    if (outcome != Outcome::done) return outcome;
  }
  std::byte* const at = queued == nullptr ? place.data : queued->stored.memory;
  std::memcpy(at, frame.bytes.data(), length);
  wire::store_header(at, {length, FrameKind::data, 0, to.slot, frame.rows, 0});
  to.sent.add(frame.rows, frame.payload());
  count(lanes_.worker_.counters.rows_sent, frame.rows);
  if (queued == nullptr) return commit(length, place.data + wire::padded(length)), Outcome::done;
  queued->row_count = frame.rows;
  queued->payload_bytes = frame.payload();
  enqueue(std::move(queued));
  return Outcome::done;
}

// --- rows too large for a frame

Outcome Lane::prepare(Destination& to) {
  if (is_row_claimed()) return to.fail_by_claim();
  close();
  // One large row per ring at a time, or the queue would be a way around back-pressure.
  if (!send_queued() && !lanes_.holds_batches()) return blocked(to);
  if (to.announced_) return Outcome::done;
  const Outcome outcome = announce(to);
  return outcome == Outcome::would_wait ? blocked(to) : outcome;
}

bool Lane::send_fragment(Destination& to, uint64_t row_bytes, PieceReader& rest) {
  constexpr uint32_t kOverhead = sizeof(FrameHeader) + sizeof(wire::FragmentPayload);
  const auto length =
      static_cast<uint32_t>(std::min<uint64_t>(kOverhead + rest.left(), ring_->frame_limit()));
  const transport::Claim place = claim(length, length);
  if (place.bytes == 0) {
    ring_->post();  // the receiver can only make room by reading what is there, so it has to get it
    return false;
  }
  const wire::FragmentPayload fragment{row_bytes, row_bytes - rest.left()};
  std::byte* const payload = place.data + sizeof(FrameHeader);
  std::memcpy(payload, &fragment, sizeof fragment);
  rest.copy_to(payload + sizeof fragment, length - kOverhead);
  const uint32_t row_count = rest.left() == 0 ? 1 : 0;
  wire::store_header(place.data, {length, FrameKind::fragment, 0, to.slot, row_count, 0});
  commit(length, place.data + wire::padded(length));
  lanes_.operation_.progressed();
  return true;
}

void Lane::send_large(std::unique_ptr<QueuedFrame> frame, uint64_t row_bytes) {
  // A claim that lies apart leaves the ring to other rows: their frame comes before what is queued.
  close();
  frame->row_count = 1;
  frame->row_bytes = row_bytes;
  frame->to->sent.add(1, row_bytes);
  count(lanes_.worker_.counters.rows_sent);
  enqueue(std::move(frame));
  send_queued();
}

Status Lane::send_shrunk(std::unique_ptr<QueuedFrame> frame, size_t bytes) {
  Destination& to = *frame->to;
  const auto payload = static_cast<uint32_t>(to.stage.framed_bytes(bytes));
  const Outcome outcome = make_room_in_ring(to, payload);
  if (outcome == Outcome::failed) return to.stage.side.status();
  if (outcome == Outcome::done) {
    const RowPieces::Piece row(frame->stored.memory, bytes);
    write(to, RowPieces(row));
    return Status::Ok();
  }
  // The row becomes a frame in its own memory: room for the header, then the row's length, if rows have one, then the row.
  std::byte* const at = frame->stored.memory + sizeof(FrameHeader);
  const size_t before = payload - bytes;
  std::memmove(at + before, frame->stored.memory, bytes);
  const auto length = static_cast<wire::RowLength>(bytes);
  if (before != 0) std::memcpy(at, &length, sizeof length);
  lanes_.worker_.overflow.shrink(frame->stored, sizeof(FrameHeader) + payload);
  frame->kind = FrameKind::data;
  frame->row_count = 1;
  frame->payload_bytes = payload;
  to.sent.add(1, payload);
  count(lanes_.worker_.counters.rows_sent);
  enqueue(std::move(frame));
  return Status::Ok();
}

// --- OPEN and FINISH

Outcome Lane::announce(Destination& to) {
  const ShuffleContext& shuffle = to.stage.shuffle;
  const StageLists& lists = shuffle.lists();
  const wire::OpenPayload open{to_key(shuffle.query()->id), shuffle.spec().stage,
                               shuffle.spec().row_bytes,    lists.digest,
                               lists.sender_count,          lists.receiver_count};
  std::string payload(reinterpret_cast<const char*>(&open), sizeof open);
  payload += to.stage.format.open_bytes();
  const size_t before_fields = payload.size();
  payload += lanes_.open_fields(shuffle.spec().delivery, to.workers);
  const Outcome outcome = send_control(to, FrameKind::open, payload,
                                       static_cast<uint32_t>(payload.size() - before_fields));
  if (outcome == Outcome::done) to.announced_ = true;
  return outcome;
}

Outcome Lane::finish(Destination& to) {
  // Another shuffle's open claim on this ring: its frame cannot be closed now.
  if (is_row_claimed()) return to.fail_by_claim();
  close();
  if (!send_queued() && !lanes_.holds_batches()) return Outcome::would_wait;
  if (!to.announced_) {
    if (const Outcome outcome = announce(to); outcome != Outcome::done) return outcome;
  }
  const wire::FinishPayload finish{to.sent.rows.load(std::memory_order_relaxed)};
  const std::string payload(reinterpret_cast<const char*>(&finish), sizeof finish);
  const Outcome outcome = send_control(to, FrameKind::finish, payload, 0);
  if (outcome != Outcome::done) return outcome;
  to.finished = true;
  ring_->post_soon();  // along with that of the next receiver, if both are on one node
  return Outcome::done;
}

// Through the ring, or into its queue. would_wait: no room, and no batch is held.
Outcome Lane::send_control(Destination& to, FrameKind kind, const std::string& payload,
                           uint32_t field_bytes) {
  const auto length = static_cast<uint32_t>(sizeof(FrameHeader) + payload.size());
  if (!has_queued()) {
    const transport::Claim place = claim(length, length);
    if (place.bytes != 0) {
      wire::store_header(place.data, {length, kind, 0, to.slot, 0, field_bytes});
      std::memcpy(place.data + sizeof(FrameHeader), payload.data(), payload.size());
      commit(length, place.data + wire::padded(length));
      return Outcome::done;
    }
    if (!lanes_.holds_batches()) {
      ring_->post();
      return Outcome::would_wait;
    }
  }
  std::unique_ptr<QueuedFrame> frame;
  // If overflow is full, batches are held, and releasing some of them helps.
  if (const Outcome outcome = make_queued(to, kind, length, frame); outcome != Outcome::done)
    return outcome == Outcome::would_wait ? Outcome::holding : outcome;
  frame->payload_bytes = static_cast<uint32_t>(payload.size());
  frame->field_bytes = field_bytes;
  std::memcpy(frame->stored.memory + sizeof(FrameHeader), payload.data(), payload.size());
  enqueue(std::move(frame));
  return Outcome::done;
}

// --- the ring

// None while its link is held.
transport::Claim Lane::claim(uint32_t least_bytes, uint32_t most_bytes) {
  if (held_->load(std::memory_order_relaxed)) return {};
  for (;;) {
    const transport::Claim place = ring_->claim(least_bytes, most_bytes);
    if (place.bytes != 0 || !lanes_.make_room_in_own_ring(*this)) return place;
  }
}

// The claimed space holds a frame of `length` bytes, which ends at `end`. A transfer starts if the threshold is reached, or
// nearly, or the ring's end is.
void Lane::commit(uint32_t length, const std::byte* end) {
  ring_->commit(length);
  // What is missing may be less than the next row needs, or room for a frame of a single row: full frames with rows of 100
  // bytes leave up to 64 bytes of the 16 KiB missing.
  const uint32_t frame = lanes_.frame_limit();
  const uint64_t threshold = lanes_.worker_.settings.threshold_bytes;
  const uint64_t missing = threshold >= frame ? frame / 8 : 0;
  if (ring_->pending_bytes() + missing >= threshold || is_last(*ring_, end)) {
    ring_->post_soon();
  } else {
    lanes_.list(*this);
  }
}

// The frame stays open in two cases: it lies in overflow and would only join a queue that has not emptied, where it can as
// well take more rows; or a row is being written in place in it.
bool Lane::flush() {
  send_queued();
  const bool would_queue = has_queued() && in_overflow_ != nullptr;
  if (open_ != nullptr && !is_row_claimed() && !would_queue) {
    close();
    send_queued();
  }
  ring_->post_soon();
  return open_ != nullptr;
}

// --- the queue

Outcome Lane::make_queued(Destination& to, FrameKind kind, uint64_t bytes,
                          std::unique_ptr<QueuedFrame>& frame) {
  ShuffleContext& shuffle = to.stage.shuffle;
  Overflow& overflow = lanes_.worker_.overflow;
  std::unique_ptr<QueuedFrame> made(new QueuedFrame);
  made->overflow = &overflow;
  if (Status status = overflow.allocate(shuffle.query()->usage, bytes, made->stored);
      !status.ok()) {
    const Outcome outcome = shuffle.operation().overflow_exhausted(shuffle.query(), bytes, status);
    return outcome == Outcome::failed ? to.stage.side.fail(shuffle.query()->cause()) : outcome;
  }
  warn_if_in_file(lanes_.worker_, *shuffle.query(), shuffle.spec().stage, made->stored);
  made->kind = kind;
  made->to = &to;
  frame = std::move(made);
  return Outcome::done;
}

void Lane::enqueue(std::unique_ptr<QueuedFrame> frame) {
  Destination& to = *frame->to;
  if (!has_queued()) ++lanes_.queued_;
  ++to.queued_;
  count(lanes_.worker_.counters.frames_out_overflow);
  count(lanes_.worker_.counters.bytes_out_overflow, frame->stored.bytes);
  to.sent.add_queued(frame->row_count, frame->bytes_of_rows());
  queue_.push(std::move(frame));
}

bool Lane::send_queued() {
  if (!has_queued()) return true;
  while (has_queued() && send_first_queued()) {
  }
  ring_->post();  // rows that were queued have waited long enough: no threshold
  if (has_queued()) return false;
  --lanes_.queued_;
  return true;
}

// Sends the first queued frame or, of a large row, as much as fits into one frame. False if there is no room.
bool Lane::send_first_queued() {
  QueuedFrame& frame = *queue_.first();
  if (frame.kind == FrameKind::fragment) {
    const RowPieces::Piece unsent(frame.stored.memory + frame.sent_bytes,
                                  frame.row_bytes - frame.sent_bytes);
    PieceReader rest{RowPieces(unsent)};
    if (!send_fragment(*frame.to, frame.row_bytes, rest)) return false;
    frame.sent_bytes = frame.row_bytes - rest.left();
    if (rest.left() == 0) --queue_.pop()->to->queued_;
    return true;
  }
  const auto length = static_cast<uint32_t>(sizeof(FrameHeader)) + frame.payload_bytes;
  const transport::Claim place = claim(length, length);
  if (place.bytes == 0) return false;
  std::memcpy(place.data + sizeof(FrameHeader), frame.stored.memory + sizeof(FrameHeader),
              frame.payload_bytes);
  wire::store_header(place.data,
                     {length, frame.kind, 0, frame.to->slot, frame.row_count, frame.field_bytes});
  ring_->commit(length);
  lanes_.operation_.progressed();
  --queue_.pop()->to->queued_;
  return true;
}

void Lane::drop_queued(Destination& to, bool data_only) {
  if (!to.has_queued()) return;
  FrameQueue rest;
  while (has_queued()) {
    std::unique_ptr<QueuedFrame> frame = queue_.pop();
    const bool is_control = frame->kind == FrameKind::open || frame->kind == FrameKind::finish;
    // A large row that was sent in part has to be completed: its receiver would take the frames that follow for
    // the rest of it.
    if (frame->to == &to && !(data_only && (is_control || frame->sent_bytes > 0))) {
      --to.queued_;
      if (frame->row_count > 0) to.sent.take_back(frame->row_count, frame->bytes_of_rows());
      count(lanes_.worker_.counters.rows_dropped, frame->row_count);
      continue;
    }
    rest.push(std::move(frame));
  }
  queue_ = std::move(rest);
  if (!has_queued()) --lanes_.queued_;
}

void Lane::lose_rows(uint32_t node) {
  QueryTable& queries = lanes_.worker_.queries;
  if (open_ != nullptr && !is_row_claimed()) {
    ShuffleContext& shuffle = open_->stage.shuffle;
    queries.lose_rows(*shuffle.query(), node);
    shuffle.drop_rows();
  }
  while (has_queued()) {
    Destination& to = *queue_.first()->to;
    queries.lose_rows(*to.stage.shuffle.query(), node);
    drop_queued(to, false);
  }
}

Outcome Lane::blocked(Destination& to) noexcept {
  count(counters_->no_room);
  count(to.sent.no_room);
  return lanes_.operation_.blocked_on().room(to.stage.shuffle.counts(), to.receiver, is_to_node_);
}

}  // namespace faro::shuffle
