#include "shuffle/receive/node_share.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/planted.h"
#include "base/return_if_error.h"
#include "shuffle/receive/broken_ring.h"

namespace faro::shuffle {

using base::Plant;
using base::planted;  // false, except in the test that plants bugs: base/planted.h

namespace {

// A slot that nobody has, or whose owner has nothing more to say by it.
uint16_t free_slot(InRing& ring) {
  const auto is_free = [&](size_t slot) {
    return ring.slot_owners[slot] == 0 || ring.slots[slot].state == Binding::State::discard;
  };
  for (size_t slot = 0; slot < ring.slots.size(); ++slot) {
    if (is_free(slot)) return static_cast<uint16_t>(slot);
  }
  ring.slot_owners.reserve(ring.slots.size() + 1);
  ring.slots.emplace_back();
  ring.slot_owners.push_back(0);
  return static_cast<uint16_t>(ring.slots.size() - 1);
}

}  // namespace

// The shares among a worker's rings of one node.
std::span<InRing> NodeShare::shares_of(std::vector<InRing>& rings) const noexcept {
  const size_t own = worker_.settings.lanes_end_at_workers() ? rings.size() / 2 : 0;
  return std::span(rings).subspan(own);
}

// This worker's part of the ring that the stream is in; null: it has bound another link, or takes nothing more.
InRing* NodeShare::in_ring(const NodeStream& stream) noexcept {
  const NodeLink& link = stream.ring->link();
  const auto made = rings_.find(link.node());
  if (made == rings_.end()) return nullptr;
  InRing& ring = shares_of(made->second)[stream.ring->number()];
  return ring.link.get() == link.carrier().get() && !ring.broken ? &ring : nullptr;
}

bool NodeShare::take(const Wanted& wanted) {
  struct Taking {
    Wanted left;
    bool any;
  } taking{wanted, false};
  const auto take = [this, &taking](NodeReader& reader, NodeFrame& frame) {
    const bool taken = this->take(reader, frame, taking.left);
    taking.any |= taken;
    return taken;
  };
  (void)end_.take(worker_.local_index, take);
  return taking.any;
}

// All but rows goes to its inbox at once, and so do rows that are dropped there. Other rows lie where any worker may move them to
// overflow until the engine asks for them, frame by frame.
bool NodeShare::take(NodeReader& reader, NodeFrame& frame, Wanted& wanted) {
  InRing* const ring = in_ring(*reader.stream);
  if (ring == nullptr) return false;
  return frame.has_rows() ? take_rows(*ring, reader, frame, wanted)
                          : take_control(*ring, reader, frame);
}

// Streams have more numbers than a worker has slots for: it has one for each that has begun for it. An OPEN that there was no memory
// for is taken again.
bool NodeShare::take_control(InRing& ring, NodeReader& reader, NodeFrame& frame) {
  const bool is_open = frame.view.header.kind == wire::FrameKind::open;
  if (is_open && binding(ring, reader) == nullptr) {
    reader.slot = free_slot(ring);
    ring.slots[reader.slot] = Binding{};
    ring.slot_owners[reader.slot] = reader.stream->id;
  } else if (binding(ring, reader) == nullptr) {
    drop_taken(ring, reader, frame);
    return true;
  }
  dispatch_taken(ring, reader, frame);
  if (!is_open) ring.slot_owners[reader.slot] = 0;
  return true;
}

// A peer on this host may change an OPEN after the node's end has read it. What was moved to overflow is charged to that query, which the
// stream keeps, so rows are never taken as those of another.
bool NodeShare::is_of_stream(const NodeStream& stream, std::span<const std::byte> open) noexcept {
  wire::OpenPayload payload;
  std::memcpy(&payload, open.data(), sizeof payload);
  return to_id(payload.query) == stream.query->id && payload.stage == stream.stage_number;
}

bool NodeShare::take_rows(InRing& ring, const NodeReader& reader, NodeFrame& frame,
                          Wanted& wanted) {
  const Binding* const bound = binding(ring, reader);
  if (bound == nullptr || bound->state == Binding::State::discard) {
    if (reader.stream->is_for_any()) return false;  // others take it
    if (bound == nullptr) {
      drop_taken(ring, reader, frame);
      return true;
    }
  } else {
    if (wanted.inbox != bound->inbox) return false;
    if (wanted.only != nullptr && bound->inbox->find(ring.sender) != wanted.only) return false;
    // The parts of a row are taken together.
    const bool is_whole = frame.view.header.row_count != 0;
    if (is_whole) wanted.inbox = nullptr;
  }
  dispatch_taken(ring, reader, frame);
  return true;
}

// What the reader's frames are for; null: its slot was given to another.
const Binding* NodeShare::binding(const InRing& ring, const NodeReader& reader) noexcept {
  const bool has_slot =
      reader.slot < ring.slots.size() && ring.slot_owners[reader.slot] == reader.stream->id;
  return has_slot ? &ring.slots[reader.slot] : nullptr;
}

// A frame that nothing is done with; one in overflow goes as it leaves its stream.
void NodeShare::drop_taken(InRing& ring, const NodeReader& reader, const NodeFrame& frame) {
  if (!frame.is_in_ring()) return;
  share_of(*reader.stream).took(frame, reader.stream->stage_word(), frame.unread == 1);
  if (reader.stream->is_for_each()) hold(*reader.stream, frame);
  frames_.release_in_ring(ring, frame.view.token);
}

// A frame that others read, too, counts once, with the last of them.
void NodeShare::dispatch_taken(InRing& ring, const NodeReader& reader, NodeFrame& frame) {
  const NodeStream& stream = *reader.stream;
  transport::FrameView view = frame.view;
  view.header.slot = reader.slot;
  view.header.length += frame.packed.bytes;
  view.header.row_count += frame.packed.rows;
  MovedFrame own;  // beside what other readers have
  MovedFrame* moved = frame.is_in_ring() ? nullptr : &frame.moved;
  if (!frame.has_rows() && moved != nullptr) {
    const Status loaded = worker_.overflow.load(moved->stored);
    if (!loaded.ok()) throw std::bad_alloc();
    view.payload = moved->stored.memory;
    if (stream.is_shared()) moved = &own;
  }
  std::vector<std::byte> open;  // read once
  if (view.header.kind == wire::FrameKind::open) {
    open.assign(view.payload, view.payload + view.payload_bytes());
    view.payload = open.data();
    if (!is_of_stream(stream, open)) {
      fail_ring(worker_, ring, "an OPEN that has changed in its ring");
      return drop_taken(ring, reader, frame);
    }
  }
  if (stream.is_for_each() && frame.has_rows()) {
    if (moved == nullptr) {
      hold(stream, frame);
    } else if (frame.unread > 1) {
      own.part = moved->part;
      own.stored = worker_.overflow.share(moved->stored);
      moved = &own;
    }
  }
  const bool counts = frame.unread == 1;
  RingShare& share = share_of(stream);
  share.took(frame, stream.stage_word(), counts);
  try {
    dispatch_.dispatch(ring, view, moved);
  } catch (const std::bad_alloc&) {
    share.left(frame, counts);
    if (stream.is_for_each() && frame.is_in_ring()) stream.ring->unhold(frame);
    worker_.overflow.free(own.stored);
    throw;
  }
}

// A reader of several holds the frame beside its stream, and beside the others.
void NodeShare::hold(const NodeStream& stream, const NodeFrame& frame) noexcept {
  if (!planted(Plant::read_by_one)) stream.ring->hold(frame);
}

RingShare& NodeShare::share_of(const NodeStream& stream) noexcept {
  return stream.ring->link().share(stream.ring->number(), worker_.local_index);
}

bool NodeShare::has_blocked_sender() const noexcept {
  const auto waits = [](const InRing& ring) {
    return !ring.link->is_absent() &&
           static_cast<const RingShare*>(ring.transport)->has_untaken() &&
           ring.transport->may_block_sender();
  };
  return std::ranges::any_of(
      rings_, [&](auto& of) { return std::ranges::any_of(shares_of(of.second), waits); });
}

bool NodeShare::spill(Haste after, const std::function<bool(const InRing&)>& of) {
  if (!has_blocked_sender()) return false;
  const auto move = [&](const NodeStream& stream, const NodeFrame& frame, uint64_t room,
                        MovedFrame& to) {
    const InRing* const ring = in_ring(stream);
    if (ring == nullptr || !of(*ring) || !may_spill(stream, after)) return false;
    const Status status = move_to_overflow(stream, frame, after, room, to);
    if (!status.ok() && after != Haste::at_once)
      (void)operation_.overflow_exhausted(stream.query, frame.view.payload_bytes(), status);
    return status.ok();
  };
  return end_.move(move);
}

// What another worker has not taken for as long as frames of any shuffle stay is moved for it: it may make no call.
bool NodeShare::may_spill(const NodeStream& stream, Haste after) {
  if (stream.is_shared()) return may_spill_for_any(stream, after);
  const NodeReader& reader = stream.readers.front();
  if (reader.worker != worker_.local_index) {
    return after == Haste::late &&
           worker_.now() >= stream.untaken_since + longest_drain_delay(worker_.settings);
  }
  InRing& ring = *in_ring(stream);
  const Binding* const bound = binding(ring, reader);
  return bound != nullptr && bound->state == Binding::State::bound &&
         spill_.may(ring, *bound->inbox, after);
}

// This worker's inbox of a stream; null: it has none that takes rows.
const Inbox* NodeShare::inbox_of(const NodeStream& stream) noexcept {
  const InRing& ring = *in_ring(stream);
  for (const NodeReader& reader : stream.readers) {
    if (reader.worker != worker_.local_index || reader.has_left) continue;
    const Binding* const bound = binding(ring, reader);
    if (bound != nullptr && bound->state == Binding::State::bound) return bound->inbox;
  }
  return nullptr;
}

// What any worker may take is not moved while one does. At once it is where this worker alone would.
bool NodeShare::may_spill_for_any(const NodeStream& stream, Haste after) {
  const Inbox* const inbox = inbox_of(stream);
  const bool is_mine = inbox != nullptr && spill_.may(*in_ring(stream), *inbox, after);
  if (is_mine && after == Haste::at_once) {
    return std::ranges::all_of(stream.readers, [&](const NodeReader& reader) {
      return reader.has_left || reader.worker == worker_.local_index;
    });
  }
  if (after == Haste::at_once || (!is_mine && after != Haste::late)) return false;
  const base::Nanoseconds delay =
      is_mine ? worker_.settings.drain_delay_us * 1000 : longest_drain_delay(worker_.settings);
  return worker_.now() >= std::max(stream.untaken_since, stream.stage->taken_at()) + delay;
}

Status NodeShare::move_to_overflow(const NodeStream& stream, const NodeFrame& frame, Haste after,
                                   uint64_t room, MovedFrame& to) {
  OverflowUsage& usage = stream.query->usage;
  if (after != Haste::at_once) {
    FARO_RETURN_IF_ERROR(to.store(worker_.overflow, usage, frame.view, room));
  } else if (!to.store_if_plenty(worker_.overflow, usage, frame.view, room)) {
    return Status(Code::overflow_exhausted, "");
  }
  if (stream.is_for_each()) {
    FARO_RETURN_IF_ERROR(worker_.overflow.make_shared(to.stored));
  }
  counters::count(worker_.counters.frames_spilled);
  counters::count(worker_.counters.bytes_spilled, frame.view.payload_bytes());
  return Status::Ok();
}

void NodeShare::has_left(const Inbox& inbox) noexcept {
  if (inbox.lists.delivery == Delivery::worker) return;
  const std::shared_ptr<NodeStage> stage = inbox.query()->node_stages.find(inbox.stage());
  if (stage == nullptr) return;
  stage->leave(worker_.local_index);
  end_.has_left();
}

}  // namespace faro::shuffle
