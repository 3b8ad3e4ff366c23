// WorkerCore, the receiving half: looking at rings, sorting frames, spilling them.
#include "shuffle/worker_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/planted.h"
#include "shuffle/node_core.h"
#include "transport/mirrored_ring.h"

namespace faro::detail {

using base::Plant;
using base::planted;
using transport::count;

namespace {

// The first block of a sender's rows in overflow: many senders with few rows each must not take much.
constexpr uint64_t kFirstPackedBytes = 512;

}  // namespace

Inbox* WorkerCore::find_inbox(const QueryId& query, uint32_t stage) noexcept {
  for (const auto& inbox : inboxes_) {
    if (inbox->stage() == stage && inbox->query()->id == query) return inbox.get();
  }
  return nullptr;
}

Inbox* WorkerCore::add_inbox(std::shared_ptr<shuffle::Query> query, uint32_t stage,
                             uint32_t made_by) {
  inboxes_.push_back(
      std::make_unique<Inbox>(std::move(query), stage, made_by, node_.worker_count()));
  return inboxes_.back().get();
}

bool WorkerCore::gather() {
  bool any = false;
  const size_t backlog = backlog_.size();  // those added while visiting are for the next time
  ready_.take([&](uint32_t number) {
    // A hostile shm peer can set any bit of its link's words.
    if (number < in_lane_by_ready_.size() && in_lane_by_ready_[number] != nullptr) {
      any |= visit(*in_lane_by_ready_[number]);
    }
  });
  for (size_t i = 0; i < backlog; ++i) {
    backlog_[i]->backlog = false;
    any |= visit(*backlog_[i]);
  }
  backlog_.erase(backlog_.begin(), backlog_.begin() + static_cast<ptrdiff_t>(backlog));
  if (std::exchange(lacked_memory_, false)) throw std::bad_alloc();
  return any;
}

bool WorkerCore::visit(InLane& lane) noexcept {
  bool any = false;
  transport::FrameView view;
  if (lane.has_unsorted) {
    if (!try_sort(lane, lane.unsorted)) return false;
    lane.has_unsorted = false;
    any = true;
  }
  while (!lane.broken) {
    switch (lane.ring->next(view)) {
      case transport::Next::frame:
        any = true;
        // What arrives can make a release urgent that was not before: its sender has less room now.
        note_unsent_release(lane);
        if (!try_sort(lane, view)) {
          lane.has_unsorted = true;
          lane.unsorted = view;
          return any;
        }
        break;
      case transport::Next::nothing:
        return any;
      case transport::Next::full:
        look_again(lane);
        return any;
      case transport::Next::invalid:
        lane.broken = true;
        return any;
    }
  }
  return any;
}

void WorkerCore::look_again(InLane& lane) noexcept {
  if (lane.backlog) return;
  lane.backlog = true;
  backlog_.push_back(&lane);
}

// Without memory for it the frame waits, and with it those behind it.
bool WorkerCore::try_sort(InLane& lane, const transport::FrameView& view) noexcept {
  try {
    sort(lane, view);
    return true;
  } catch (const std::bad_alloc&) {
    lacked_memory_ = true;
    look_again(lane);
    return false;
  }
}

void WorkerCore::fail_link(InLane& lane, std::string why) {
  node_.membership().fail_link(
      lane.sender_node, links_[lane.sender_node],
      Status(Code::protocol_error, fmt::format("worker {}: {}", lane.sender, std::move(why))));
  lane.broken = true;
}

void WorkerCore::sort(InLane& lane, const transport::FrameView& view) {
  if (view.header.slot >= lane.slots.size()) {
    fail_link(lane, fmt::format("frame for slot {}, but slots end at {} (shuffle.limit)",
                                view.header.slot, lane.slots.size() - 1));
    return;
  }
  switch (view.header.kind) {
    case wire::FrameKind::open:
      on_open(lane, view);
      release_in_ring(lane, view.token);
      break;
    case wire::FrameKind::finish:
      on_finish(lane, view);
      release_in_ring(lane, view.token);
      break;
    default:
      on_rows(lane, view);
  }
}

void WorkerCore::unbind(Inbox::Stream& stream, Binding::State state) noexcept {
  if (!stream.bound) return;
  stream.lane->slots[stream.slot] = Binding{state, nullptr};
  stream.bound = false;
}

Status WorkerCore::lists_differ(const Inbox& inbox, uint32_t sender,
                                const wire::OpenPayload& opened) const {
  return Status(Code::stage_mismatch,
                fmt::format("stage {} of query {}: worker {} opened it with {} senders and {} "
                            "receivers, others than worker {}, with {}",
                            inbox.stage(), inbox.query()->id.to_string(), sender,
                            opened.sender_count, opened.receiver_count, number_, inbox.lists.text))
      .of_stage(inbox.stage());
}

Status WorkerCore::formats_differ(const Inbox& inbox, uint32_t sender,
                                  const shuffle::RowFormat& written,
                                  const shuffle::RowFormat& read) const {
  const std::vector<session::Node>& nodes = node_.membership().nodes();
  return Status(
             Code::stage_mismatch,
             fmt::format("stage {} of query {}: the rows that worker {} of {} sends are {}, but "
                         "worker {} of {} reads them as {}",
                         inbox.stage(), inbox.query()->id.to_string(), sender,
                         nodes[node_.queries().node_of_worker(sender)].name, written.beside(read),
                         number_, nodes[node_.membership().node()].name, read.beside(written)))
      .of_stage(inbox.stage());
}

void WorkerCore::on_open(InLane& lane, const transport::FrameView& view) {
  wire::OpenPayload open;
  std::memcpy(&open, view.payload, sizeof open);
  auto format = shuffle::RowFormat::of_open({view.payload, view.payload_bytes()});
  const uint16_t slot = view.header.slot;
  Binding& binding = lane.slots[slot];
  // A used slot is bound anew: its last query failed before it could finish.
  if (binding.state == Binding::State::bound)
    unbind(binding.inbox->stream(lane.sender), Binding::State::discard);
  binding = Binding{Binding::State::discard, nullptr};

  const QueryId id = shuffle::to_id(open.query);
  std::shared_ptr<shuffle::Query> query = node_.queries().hear(id, lane.sender_node);
  if (query == nullptr || query->failed() || query->outcome_known()) return;
  Inbox* inbox = find_inbox(id, open.stage);
  if (inbox != nullptr && !inbox->agrees(open)) {
    node_.queries().fail(*query, lists_differ(*inbox, lane.sender, open));
    return;
  }
  if (inbox != nullptr && !inbox->format.agrees(format)) {
    node_.queries().fail(*query, formats_differ(*inbox, lane.sender, format, inbox->format));
    return;
  }
  if (inbox != nullptr && inbox->discarding) return;
  if (inbox == nullptr) {
    const auto waiting = std::count_if(inboxes_.begin(), inboxes_.end(), [&](const auto& i) {
      return !i->open && !i->discarding && i->made_by == lane.sender_node;
    });
    if (static_cast<size_t>(waiting) >= slots_.size()) {
      node_.queries().fail_by_sender(
          *query, lane.sender_node,
          Status(Code::query_unopened,
                 fmt::format(
                     "worker {} was sent rows for more than shuffle.limit = {} shuffles that it "
                     "has not opened",
                     number_, slots_.size()))
              .of_stage(open.stage));
      return;
    }
    node_.queries().add_unopened(*query, number_, open.stage, lane.sender, now());
    inbox = add_inbox(query, open.stage, lane.sender_node);
  }
  Inbox::Stream& stream = inbox->stream(lane.sender);
  if (!inbox->is_sender(lane.sender)) {
    node_.queries().fail(
        *query,
        Status(
            Code::stage_mismatch,
            fmt::format("worker {} sends in stage {}, but worker {} opened it without that sender",
                        lane.sender, open.stage, number_))
            .of_stage(open.stage));
  } else if (inbox->open && open.row_bytes != inbox->row_bytes) {
    node_.queries().fail(
        *query,
        Status(
            Code::stage_mismatch,
            fmt::format("stage {}: worker {} sends rows with row_bytes = {}, worker {} expects {}",
                        open.stage, lane.sender, open.row_bytes, number_, inbox->row_bytes))
            .of_stage(open.stage));
  } else if (stream.bound || stream.finish_seen) {
    fail_link(lane, fmt::format("stage {} of query {} opened twice", open.stage, id.to_string()));
  } else {
    stream.bound = true;
    stream.lane = &lane;
    stream.slot = slot;
    stream.row_bytes = open.row_bytes;
    stream.opened = open;
    stream.format = format.digest;
    if (inbox->heard.digest == 0) inbox->heard = std::move(format);
    binding = Binding{Binding::State::bound, inbox};
  }
}

void WorkerCore::on_finish(InLane& lane, const transport::FrameView& view) {
  Binding& binding = lane.slots[view.header.slot];
  if (binding.state == Binding::State::unbound) {
    fail_link(lane, fmt::format("FINISH for slot {}, which is not open", view.header.slot));
    return;
  }
  Inbox* const inbox = binding.inbox;
  binding = Binding{};
  if (inbox == nullptr) return;  // discarded
  wire::FinishPayload finish;
  std::memcpy(&finish, view.payload, sizeof finish);
  Inbox::Stream& stream = inbox->stream(lane.sender);
  stream.bound = false;
  stream.finish_seen = true;
  stream.rows_promised = finish.row_count;
  if (stream.rows_promised != stream.rows_received) {
    node_.queries().fail_by_sender(
        *inbox->query(), lane.sender_node,
        Status(Code::query_failed,
               fmt::format("stage {}: worker {} sent {} rows to worker {}, but {} arrived",
                           inbox->stage(), lane.sender, stream.rows_promised, number_,
                           stream.rows_received))
            .of_stage(inbox->stage()));
    return;
  }
  settle(*inbox, stream);
}

void WorkerCore::on_rows(InLane& lane, const transport::FrameView& view) {
  const Binding binding = lane.slots[view.header.slot];
  if (binding.state == Binding::State::unbound) {
    fail_link(lane, fmt::format("rows for slot {}, which is not open", view.header.slot));
    return;
  }
  if (binding.state == Binding::State::discard) {
    release_in_ring(lane, view.token);
    return;
  }
  Inbox& inbox = *binding.inbox;
  Inbox::Stream& stream = inbox.stream(lane.sender);
  const uint64_t rows = view.header.row_count;
  const bool whole = view.header.kind == wire::FrameKind::data;
  const bool fits = !whole ? rows <= 1
                    : stream.row_bytes != 0
                        ? rows * stream.row_bytes == view.payload_bytes()
                        : rows * sizeof(wire::RowLength) <= view.payload_bytes();
  if (!fits) {
    fail_link(lane, fmt::format("{} rows of {} bytes in a frame of {}", rows, stream.row_bytes,
                                view.payload_bytes()));
    return;
  }
  FrameNode* const node = pool_.take();
  if (node == nullptr) throw std::bad_alloc();
  node->lane = &lane;
  node->inbox = &inbox;
  node->token = view.token;
  node->kind = view.header.kind;
  node->sender = lane.sender;
  node->row_count = view.header.row_count;
  node->row_bytes = stream.row_bytes;
  node->payload_bytes = view.payload_bytes();
  node->payload = view.payload;
  stream.rows_received += rows;
  lane.append(node);
  inbox.append(node);
}

void WorkerCore::settle(Inbox& inbox, Inbox::Stream& stream) {
  if (!stream.finish_seen || stream.finished || stream.first != nullptr) return;
  stream.finished = true;
  ++inbox.finished_count;
  if (stream.assembly.place != shuffle::Stored::Place::none) {
    node_.queries().fail(
        *inbox.query(),
        Status(Code::query_failed,
               fmt::format("stage {}: a sender finished in the middle of a row", inbox.stage()))
            .of_stage(inbox.stage()));
  }
}

FrameNode* WorkerCore::next_frame(Inbox& inbox, Inbox::Stream* only) {
  for (;;) {
    Inbox::Stream* const stream = only == nullptr          ? inbox.active()
                                  : only->first != nullptr ? only
                                                           : nullptr;
    if (stream == nullptr || inbox.query()->failed()) return nullptr;
    FrameNode* node = stream->first;
    if (node->kind == wire::FrameKind::fragment) {
      node = assemble(inbox, *stream);
      if (node == nullptr) {
        if (stream->first == nullptr)
          continue;      // the rest of the row has not come: other senders' turn
        return nullptr;  // no room to assemble it now
      }
    } else {
      if (!make_readable(inbox, *node)) return nullptr;
      inbox.pop(*stream);
      if (node->lane != nullptr) node->lane->unlink(node);
      if (node->lane != nullptr && planted(Plant::read_position_too_early))
        release_in_ring(*node->lane, node->token);
    }
    settle(inbox, *stream);
    return node;
  }
}

bool WorkerCore::make_readable(Inbox& inbox, FrameNode& node) {
  if (node.payload != nullptr) return true;
  if (Status status = node_.overflow().load(node.stored); !status.ok()) {
    node_.queries().fail(*inbox.query(), status);
    return false;
  }
  node.payload = node.stored.memory;
  return true;
}

// Appends the fragments at the head of a stream to the row they belong to; the finished row as a
// node of its own.
FrameNode* WorkerCore::assemble(Inbox& inbox, Inbox::Stream& stream) {
  while (stream.first != nullptr && stream.first->kind == wire::FrameKind::fragment) {
    FrameNode* const node = stream.first;
    if (!make_readable(inbox, *node)) return nullptr;
    wire::FragmentPayload fragment;
    std::memcpy(&fragment, node->payload, sizeof fragment);
    const uint64_t bytes = node->payload_bytes - sizeof fragment;
    const bool first = stream.assembly.place == shuffle::Stored::Place::none;
    const uint64_t row_bytes = first ? fragment.row_bytes : stream.assembly.bytes;
    const bool last = stream.assembled_bytes + bytes == row_bytes;
    if (fragment.row_bytes != row_bytes || fragment.offset != stream.assembled_bytes ||
        bytes > row_bytes - stream.assembled_bytes ||
        row_bytes > node_.settings().row_limit_bytes ||
        (inbox.row_bytes != 0 && row_bytes != inbox.row_bytes) || last != (node->row_count == 1)) {
      node_.queries().fail(
          *inbox.query(),
          Status(Code::query_failed,
                 fmt::format("stage {}: worker {} sent a fragment that does not continue its row",
                             inbox.stage(), node->sender))
              .of_stage(inbox.stage()));
      return nullptr;
    }
    if (first) {
      if (Status status =
              node_.overflow().allocate(inbox.query()->usage, row_bytes, stream.assembly);
          !status.ok()) {
        (void)overflow_exhausted(inbox.query(), row_bytes, status);
        return nullptr;
      }
    }
    std::memcpy(stream.assembly.memory + stream.assembled_bytes, node->payload + sizeof fragment,
                bytes);
    stream.assembled_bytes += bytes;
    inbox.pop(stream);
    if (node->lane != nullptr) node->lane->unlink(node);
    const uint32_t sender = node->sender;
    release(node, false);
    if (last) {
      FrameNode* const row = pool_.take();  // the fragment's, which was just given back
      row->sender = sender;
      row->row_count = 1;
      row->row_bytes = static_cast<uint32_t>(row_bytes);
      row->payload_bytes = row_bytes;
      row->stored = std::exchange(stream.assembly, {});
      row->payload = row->stored.memory;
      stream.assembled_bytes = 0;
      return row;
    }
    progressed();  // the row is larger than what lies in the ring: each part is progress
  }
  return nullptr;
}

void WorkerCore::note_unsent_release(InLane& lane) noexcept {
  if (lane.release_unsent) return;
  lane.release_unsent = true;
  release_unsent_.push_back(&lane);
}

void WorkerCore::release_in_ring(InLane& lane, uint32_t token) noexcept {
  lane.ring->release(token);
  note_unsent_release(lane);
}

void WorkerCore::tell_releases() {
  for (InLane* lane : release_unsent_) {
    lane->release_unsent = false;
    lane->ring->flush_releases();
  }
  release_unsent_.clear();
}

void WorkerCore::release(FrameNode* node, bool was_handed_out) noexcept {
  if (node->lane != nullptr) {
    if (was_handed_out) set_held(held() - 1);
    if (!(was_handed_out && planted(Plant::read_position_too_early)))
      release_in_ring(*node->lane, node->token);
  } else {
    node_.overflow().free(node->stored);
  }
  pool_.give(node);
}

Status WorkerCore::detach(shuffle::Query& query, FrameNode* node) {
  if (node->lane == nullptr) return Status::Ok();
  shuffle::Stored stored;
  FARO_RETURN_IF_ERROR(node_.overflow().allocate(query.usage, node->payload_bytes, stored));
  std::memcpy(stored.memory, node->payload, node->payload_bytes);
  release_in_ring(*node->lane, node->token);
  set_held(held() - 1);
  node->lane = nullptr;
  node->stored = stored;
  node->payload = stored.memory;
  return Status::Ok();
}

void WorkerCore::discard(Inbox& inbox) noexcept {
  inbox.discarding = true;
  for (Inbox::Stream& stream : inbox.streams()) discard(inbox, stream);
}

void WorkerCore::discard(Inbox& inbox, Inbox::Stream& stream) noexcept {
  while (stream.first != nullptr) {
    FrameNode* const node = inbox.pop(stream);
    if (node->lane != nullptr) node->lane->unlink(node);
    release(node, false);
  }
  node_.overflow().free(stream.assembly);
  stream.assembled_bytes = 0;
  unbind(stream, Binding::State::discard);
}

// As if that sender had never sent anything.
void WorkerCore::forget(Inbox& inbox, uint32_t sender) noexcept {
  Inbox::Stream& stream = inbox.stream(sender);
  discard(inbox, stream);
  if (stream.finished) --inbox.finished_count;
  stream = Inbox::Stream{};
}

// What came before the shuffle was opened here has to fit to how it was.
Status WorkerCore::check_early_senders(Inbox& inbox, const ShuffleSpec& spec,
                                       const shuffle::StageLists& lists,
                                       const shuffle::RowFormat& format) {
  for (uint32_t sender = 0; sender < node_.worker_count(); ++sender) {
    Inbox::Stream& stream = inbox.stream(sender);
    if (!stream.bound && !stream.finish_seen) continue;
    const bool is_sender =
        std::find(spec.senders.begin(), spec.senders.end(), sender) != spec.senders.end();
    const bool agrees = stream.opened.lists == lists.digest;
    const shuffle::RowFormat written = inbox.format_of(stream);
    if (is_sender && agrees && stream.row_bytes == spec.row_bytes && format.agrees(written))
      continue;
    if (!node_.queries().takes_part(*inbox.query(), stream.lane->sender_node)) {
      fail_link(*stream.lane,
                fmt::format("it sends rows of query {}, in which its node takes no part",
                            spec.query.to_string()));
      forget(inbox, sender);
      continue;
    }
    inbox.lists = lists;
    Status status =
        !is_sender || !agrees ? lists_differ(inbox, sender, stream.opened)
        : !format.agrees(written)
            ? formats_differ(inbox, sender, written, format)
            : Status(Code::stage_mismatch,
                     fmt::format("stage {}: worker {} sends rows with row_bytes = {}, worker "
                                 "{} opened it with {}",
                                 spec.stage, sender, stream.row_bytes, number_, spec.row_bytes))
                  .of_stage(spec.stage);
    node_.queries().fail(*inbox.query(), status);
    return status;
  }
  return Status::Ok();
}

Status WorkerCore::check_formats(Inbox& inbox) {
  for (const uint32_t sender : *inbox.senders) {
    const shuffle::RowFormat written = inbox.format_of(inbox.stream(sender));
    if (inbox.format.agrees(written)) continue;
    const Status differs = formats_differ(inbox, sender, written, inbox.format);
    node_.queries().fail(*inbox.query(), differs);
    return differs;
  }
  return Status::Ok();
}

// Copies what lies in a ring to overflow; what is handed out stays.
bool WorkerCore::move_aside(InLane& lane) {
  bool moved = false;
  while (lane.first != nullptr) {
    FrameNode& node = *lane.first;
    const uint64_t bytes = node.payload_bytes;
    if (const Status status = set_aside(lane, node); !status.ok()) {
      (void)overflow_exhausted(lane.first->inbox->query(), bytes, status);
      break;
    }
    count(counters_.frames_spilled);
    count(counters_.bytes_spilled, bytes);
    moved = true;
  }
  if (moved) lane.ring->flush_releases();
  return moved;
}

// The oldest frame of a ring that is not handed out: to the block of the one before it in its queue, or
// into one of its own.
Status WorkerCore::set_aside(InLane& lane, FrameNode& node) {
  Inbox::Stream& stream = node.inbox->stream(node.sender);
  const std::span<const std::byte> rows(node.payload, node.payload_bytes);
  FrameNode* const before = stream.aside;
  if (before != nullptr && before->next == &node && is_packable(*before, node)) {
    FARO_RETURN_IF_ERROR(node_.overflow().append(before->stored, rows));
    before->payload_bytes += rows.size();
    before->row_count += node.row_count;
    Inbox::remove_behind(stream, before);
    lane.unlink(&node);
    release_in_ring(lane, node.token);
    pool_.give(&node);
    return Status::Ok();
  }
  shuffle::Stored stored;
  FARO_RETURN_IF_ERROR(
      node_.overflow().store(node.inbox->query()->usage, rows, room_to_pack(before, node), stored));
  lane.unlink(&node);
  release_in_ring(lane, node.token);
  node.lane = nullptr;
  node.stored = stored;
  node.payload = stored.memory;  // null if it went to the file
  stream.aside = &node;
  return Status::Ok();
}

bool WorkerCore::is_packable(const FrameNode& before, const FrameNode& node) noexcept {
  return before.kind == wire::FrameKind::data && node.kind == wire::FrameKind::data &&
         before.row_bytes == node.row_bytes && before.stored.room_left() >= node.payload_bytes;
}

// For the frames that follow: twice what the ones before had, a whole number of such frames.
uint64_t WorkerCore::room_to_pack(const FrameNode* before, const FrameNode& node) noexcept {
  const uint64_t bytes = node.payload_bytes;
  if (node.kind != wire::FrameKind::data) return bytes;
  const uint64_t wanted = std::min(shuffle::Overflow::kPackedBytes,
                                   before == nullptr ? kFirstPackedBytes : 2 * before->stored.room);
  return bytes < kFirstPackedBytes ? wanted : std::max(wanted / bytes, uint64_t{1}) * bytes;
}

bool WorkerCore::move_aside_where_needed() {
  bool moved = false;
  for (InLane& lane : in_lanes_) {
    if (lane.blocks_sender()) moved |= move_aside(lane);
  }
  return moved;
}

}  // namespace faro::detail
