#include "shuffle/receive/node_streams.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/planted.h"
#include "shuffle/receive/node_link.h"
#include "wire/frame.h"
#include "wire/open_fields.h"

namespace faro::shuffle {

using base::Plant;
using base::planted;  // false, except in the test that plants bugs: base/planted.h

namespace {

// Whether its rows may become part of others, or others of them: the parts of a row have a place each, and what several use is theirs by
// frames. A frame that says more rows than it has bytes is left to who takes it.
bool is_packable(const NodeStream& stream, const NodeFrame& frame) noexcept {
  const wire::FrameHeader& header = frame.view.header;
  return !stream.is_for_each() && header.kind == wire::FrameKind::data && header.row_count != 0 &&
         header.row_count <= frame.view.payload_bytes();
}

// The frame before it, if that lies in overflow in a block with room for this one; null: there is none.
NodeFrame* packable_before(const NodeStream& stream, const NodeFrame& frame) noexcept {
  NodeFrame* const before = frame.before;
  if (before == nullptr || before->is_in_ring() || !is_packable(stream, *before) ||
      !is_packable(stream, frame))
    return nullptr;
  const Stored& stored = before->moved.stored;
  const bool has_room =
      stored.place != Stored::Place::none && stored.room_left() >= frame.view.payload_bytes();
  const auto stands_at = [&](const NodeReader& reader) { return reader.next == &frame; };
  return has_room && std::ranges::none_of(stream.readers, stands_at) ? before : nullptr;
}

uint64_t room_for(const NodeStream& stream, const NodeFrame& frame) noexcept {
  if (!is_packable(stream, frame)) return 0;
  const bool follows =
      frame.before != nullptr && !frame.before->is_in_ring() && frame.before->has_rows();
  return room_to_pack(follows ? frame.before->moved.stored.room : 0, frame.view.payload_bytes());
}

}  // namespace

// --- what comes

void NodeStreams::sort(NodeRing& ring, NodeFrame& frame) {
  const wire::FrameHeader& header = frame.view.header;
  if (header.kind == wire::FrameKind::open && !open(ring, frame)) return;
  const auto found = ring.open().find(header.slot);
  if (found == ring.open().end()) return break_rule(ring, frame, "which is not open");
  NodeStream* const stream = found->second;
  if (stream != nullptr && !stream->is_over()) {
    if (stream->row_begin != nullptr && header.kind != wire::FrameKind::fragment)
      return break_rule(ring, frame, "in the middle of a row");
    check_rows(*stream, frame);
    NodeFrame* const kept =
        stream->is_shared() && !frame.has_rows() ? keep_control(*stream, frame) : &frame;
    if (kept != nullptr) add(*stream, *kept);
  } else {
    ring.give_back(frame);
  }
  if (header.kind != wire::FrameKind::finish) return;
  ring.open().erase(found);
  if (stream != nullptr) finish(*stream);
}

void NodeStreams::break_rule(NodeRing& ring, const NodeFrame& frame, std::string_view what) {
  const session::Node& node = membership_.nodes()[ring.link().node()];
  membership_.fail_link(
      node.number, ring.link().carrier(),
      base::error(Code::protocol_error, "a frame of kind {} for stream {} of ring {}, {}",
                  static_cast<int>(frame.view.header.kind), frame.view.header.slot, ring.number(),
                  what));
  ring.give_back(frame);
}

// The number says which worker the stream is for, by its remainder, unless a field does. It may still be that of another stream, whose
// query has failed at the sender. Throws: std::bad_alloc; then it can be called again.
bool NodeStreams::open(NodeRing& ring, const NodeFrame& frame) {
  const wire::FrameHeader& header = frame.view.header;
  const std::byte* const fields = frame.view.payload + wire::bytes_before_fields(header);
  const std::vector<std::byte> list(fields, fields + header.field_bytes);  // read once
  wire::OpenFields said;
  const char* const why =
      header.slot / readers_.worker_count() >= membership_.settings().shuffle_limit
          ? "which is beyond shuffle.limit"
          : said.read(list, readers_.worker_count());
  if (why != nullptr) {
    break_rule(ring, frame, why);
    return false;
  }
  NodeStream*& known = ring.open()[header.slot];
  if (known != nullptr) finish(*std::exchange(known, nullptr));
  wire::OpenPayload payload;
  std::memcpy(&payload, frame.view.payload, sizeof payload);
  const std::shared_ptr<Query> query = queries_.hear(to_id(payload.query), ring.link().node());
  if (query == nullptr || query->failed() || query->outcome_known()) return true;
  NodeStream made;
  made.ring = &ring;
  made.id = ++opened_;
  made.delivery = static_cast<Delivery>(said.delivery);
  made.query = query;
  made.stage_number = payload.stage;
  for (uint32_t worker = 0; worker < readers_.worker_count(); ++worker) {
    const bool reads =
        made.is_shared() ? said.has(worker) : worker == header.slot % readers_.worker_count();
    if (reads) made.readers.push_back({nullptr, worker});
  }
  if (made.is_shared()) made.stage = query->node_stages.of(payload.stage, readers_.worker_count());
  NodeStream& stream = ring.streams().emplace_back(std::move(made));
  stream.place = std::prev(ring.streams().end());
  for (NodeReader& reader : stream.readers) reader.stream = &stream;
  known = &stream;
  return true;
}

// Nothing more comes by it. May destroy it.
void NodeStreams::finish(NodeStream& stream) noexcept {
  stream.is_finished = true;
  (void)end_if_done(stream);
}

// FINISH says how many rows were sent. Who gets all of them compares that itself (Dispatch::finish). A sender may have dropped some
// that nobody wants.
void NodeStreams::check_rows(NodeStream& stream, const NodeFrame& frame) {
  if (!stream.is_for_any() || frame.view.header.kind != wire::FrameKind::finish) return;
  note_left(stream);
  if (!stream.has_readers()) return;
  wire::FinishPayload finish;
  std::memcpy(&finish, frame.view.payload, sizeof finish);
  if (finish.row_count == stream.rows) return;
  queries_.fail_by_sender(
      *stream.query, stream.ring->link().node(),
      base::error(Code::query_failed, "a worker of {} sent {} rows to {}, but {} arrived",
                  membership_.nodes()[stream.ring->link().node()].name, finish.row_count,
                  membership_.nodes()[membership_.node()].name, stream.rows));
}

// Copies an OPEN or a FINISH for several readers to overflow: some of them may look late. Null: there is no room, and the query has
// failed. Throws: std::bad_alloc.
NodeFrame* NodeStreams::keep_control(NodeStream& stream, NodeFrame& frame) {
  auto kept = std::make_unique<NodeFrame>();
  kept->view = frame.view;
  kept->is_moved = true;
  const Status status =
      overflow_.allocate(stream.query->usage, frame.view.payload_bytes(), kept->moved.stored);
  if (!status.ok()) {
    queries_.fail(*stream.query, status);
    stream.ring->give_back(frame);
    return nullptr;
  }
  std::memcpy(kept->moved.stored.memory, frame.view.payload, frame.view.payload_bytes());
  kept->view.payload = kept->moved.stored.memory;
  stream.ring->give_back(frame);
  return kept.release();
}

void NodeStreams::add(NodeStream& stream, NodeFrame& frame) noexcept {
  note_left(stream);
  const auto readers = static_cast<uint32_t>(
      std::ranges::count_if(stream.readers, [](const NodeReader& r) { return !r.has_left; }));
  if (frame.is_in_ring()) stream.ring->count_untaken(1);
  const wire::FrameHeader& header = frame.view.header;
  stream.rows += header.row_count;
  if (readers == 0) return drop(*stream.ring, frame);
  const bool is_for_any = stream.is_for_any() && frame.has_rows();
  if (stream.first == nullptr) stream.untaken_since = membership_.clock().now_ns();
  frame.unread = is_for_any ? 1 : readers;
  stream.append(&frame);
  note_untaken(stream, frame, 1);
  if (is_for_any && header.kind == wire::FrameKind::fragment) note_part_of_row(stream, frame);
  const bool is_too_early =
      planted(Plant::finished_too_early) && header.kind == wire::FrameKind::finish;
  for (NodeReader& reader : stream.readers) {
    if (reader.has_left) continue;
    if (reader.next == nullptr || (is_too_early && stream.is_for_any())) {
      readers_.stand_at(reader, &frame);
    }
    if (!is_for_any) readers_.note(reader.worker);
  }
  if (is_for_any) readers_.note(stream);
}

// The parts of a row are taken together, once all of them have come.
void NodeStreams::note_part_of_row(NodeStream& stream, const NodeFrame& frame) noexcept {
  const bool is_last = frame.view.header.row_count == 1;
  if (stream.row_begin == nullptr && !is_last) {
    stream.row_begin = &frame;
    stream.ring->count_begun_rows(1);
  } else if (is_last) {
    forget_begun_row(stream);
  }
}

void NodeStreams::forget_begun_row(NodeStream& stream) noexcept {
  if (std::exchange(stream.row_begin, nullptr) != nullptr) stream.ring->count_begun_rows(-1);
}

bool NodeStreams::store_begun_rows(NodeRing& ring) noexcept {
  if (ring.begun_rows() == 0 || !ring.may_block_sender()) return true;
  bool all = true;
  for (NodeStream& stream : ring.streams()) {
    if (stream.row_begin == nullptr) continue;
    try {
      Status status;
      const Move move = [&](const NodeStream&, const NodeFrame& frame, uint64_t room,
                            MovedFrame& to) {
        status = to.store(overflow_, stream.query->usage, frame.view, room);
        return status.ok();
      };
      (void)this->move(stream, move);
      if (!status.ok()) {
        queries_.fail(*stream.query, status);
      } else {
        all &= stream.first_in_ring() == nullptr;
      }
    } catch (const std::bad_alloc&) {
      queries_.fail_for_memory(*stream.query);
    }
  }
  return all;
}

// --- what goes

bool NodeStreams::taken(NodeReader& reader, base::Nanoseconds at) noexcept {
  NodeStream& stream = *reader.stream;
  NodeFrame& frame = *reader.next;
  if (frame.has_rows()) {
    stream.untaken_since = at;
    if (stream.stage != nullptr) stream.stage->taken(at);
  }
  if (stream.is_for_any() && frame.has_rows()) {
    for (NodeReader& each : stream.readers) {
      if (each.next == &frame) readers_.stand_at(each, frame.next);
    }
  } else {
    readers_.stand_at(reader, frame.next);
  }
  if (--frame.unread == 0) remove(stream, frame);
  return !end_if_done(stream);
}

void NodeStreams::note_untaken(NodeStream& stream, const NodeFrame& frame, int more) noexcept {
  if (!frame.has_rows()) return;
  counters::NodeEndCounters& shown = membership_.counters().node_end();
  const bool had = stream.untaken != 0;
  stream.untaken += static_cast<uint32_t>(more);
  counters::count(shown.untaken_frames, static_cast<uint64_t>(more));
  const bool has = stream.untaken != 0;
  if (has != had) counters::count(shown.untaken_streams, has ? 1 : -uint64_t{1});
}

// All have passed it. In the ring, who has taken it holds it in the stream's place, or each reader holds it beside the stream.
void NodeStreams::remove(NodeStream& stream, NodeFrame& frame) noexcept {
  stream.remove(&frame);
  note_untaken(stream, frame, -1);
  if (frame.is_in_ring()) {
    stream.ring->count_untaken(-1);
    if (stream.is_for_each()) stream.ring->give_back(frame);
    return;
  }
  overflow_.free(frame.moved.stored);  // nothing, if a reader has it
  delete &frame;
}

bool NodeStreams::end_if_done(NodeStream& stream) noexcept {
  if (!stream.is_finished || stream.first != nullptr) return false;
  readers_.forget(stream);
  stream.ring->streams().erase(stream.place);
  return true;
}

void NodeStreams::leave(NodeReader& reader) noexcept {
  NodeStream& stream = *reader.stream;
  NodeFrame* frame = reader.next;
  reader.has_left = true;
  readers_.stand_at(reader, nullptr);
  while (frame != nullptr) {
    NodeFrame* const next = frame->next;
    const bool is_for_any = stream.is_for_any() && frame->has_rows();
    if (!is_for_any && --frame->unread == 0) remove(stream, *frame);
    frame = next;
  }
  if (stream.has_readers()) return gave_back(*stream.ring);
  drop_frames(stream);
}

void NodeStreams::note_left(NodeStream& stream) noexcept {
  if (planted(Plant::left_unnoticed)) return;
  for (NodeReader& reader : stream.readers) {
    if (stream.stage != nullptr && !reader.has_left && stream.stage->has_left(reader.worker))
      leave(reader);
  }
}

void NodeStreams::sweep() noexcept {
  for (uint32_t worker = 0; worker < readers_.worker_count(); ++worker) {
    for (NodeReader* reader = readers_.first(worker); reader != nullptr;) {
      NodeReader* const next = reader->waiting_next;
      NodeStream& stream = *reader->stream;
      if (stream.is_over()) {
        drop_frames(stream);
      } else {
        note_left(stream);
      }
      (void)end_if_done(stream);
      reader = next;
    }
  }
}

void NodeStreams::drop_all(NodeRing& ring) noexcept {
  for (NodeStream& stream : ring.streams()) drop_frames(stream);
  ring.streams().clear();
  ring.open().clear();
}

// The stream may have others later.
void NodeStreams::drop_frames(NodeStream& stream) noexcept {
  readers_.forget(stream);
  forget_begun_row(stream);
  while (NodeFrame* const frame = stream.first) {
    stream.remove(frame);
    note_untaken(stream, *frame, -1);
    drop(*stream.ring, *frame);
  }
  gave_back(*stream.ring);
}

void NodeStreams::drop(NodeRing& ring, NodeFrame& frame) noexcept {
  if (frame.is_in_ring()) {
    ring.count_untaken(-1);
    return ring.give_back(frame);
  }
  overflow_.free(frame.moved.stored);
  delete &frame;
}

// Frames that nobody has taken. Others may have waited behind them.
void NodeStreams::gave_back(NodeRing& ring) noexcept {
  ring.tell();
  if (ring.is_full() && !planted(Plant::full_for_ever)) ring.tell_later();
}

bool NodeStreams::move(NodeStream& stream, const Move& move) {
  bool moved = false;
  NodeFrame* next = nullptr;
  try {
    for (NodeFrame* frame = stream.first_in_ring(); frame != nullptr; frame = next) {
      next = frame->next;
      if (!frame->is_in_ring()) continue;
      if (!move_frame(stream, *frame, move)) break;
      moved = true;
    }
  } catch (const std::bad_alloc&) {
    if (moved) gave_back(*stream.ring);
    throw;
  }
  if (moved) gave_back(*stream.ring);
  return moved;
}

// Gives back what was stored unless all went well.
bool NodeStreams::move_frame(NodeStream& stream, NodeFrame& frame, const Move& move) {
  if (NodeFrame* const before = packable_before(stream, frame)) {
    const bool is_stored = move(stream, frame, 0, before->moved);
    if (is_stored) pack(stream, frame, *before);
    return is_stored;
  }
  std::unique_ptr<NodeFrame> kept(new (std::nothrow) NodeFrame);
  if (kept == nullptr) return false;
  bool is_stored = false;
  try {
    is_stored = move(stream, frame, room_for(stream, frame), kept->moved);
  } catch (const std::bad_alloc&) {
    overflow_.free(kept->moved.stored);
    throw;
  }
  if (!is_stored) {
    overflow_.free(kept->moved.stored);
    return false;
  }
  kept->is_moved = true;
  kept->view = frame.view;
  kept->view.payload = nullptr;
  stream.replace(&frame, kept.release());
  stream.ring->count_untaken(-1);
  stream.ring->give_back(frame);
  return true;
}

// Whoever takes the other one takes its rows, too.
void NodeStreams::pack(NodeStream& stream, NodeFrame& frame, NodeFrame& into) noexcept {
  into.packed.frames += 1;
  into.packed.rows += frame.view.header.row_count;
  into.packed.bytes += frame.view.payload_bytes();
  into.packed.bytes_in_ring += static_cast<uint32_t>(wire::padded(frame.view.header.length));
  stream.remove(&frame);
  note_untaken(stream, frame, -1);
  stream.ring->count_untaken(-1);
  stream.ring->give_back(frame);
}

}  // namespace faro::shuffle
