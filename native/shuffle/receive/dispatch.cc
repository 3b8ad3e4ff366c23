#include "shuffle/receive/dispatch.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>
#include <vector>

#include "base/error.h"
#include "shuffle/receive/broken_ring.h"
#include "wire/open_fields.h"

namespace faro::shuffle {

void Dispatch::dispatch(InRing& ring, const transport::FrameView& view, MovedFrame* moved) {
  if (view.header.slot >= ring.slots.size()) {
    fail_ring(worker_, ring, "frame for slot {}, but slots end at {} (shuffle.limit)",
              view.header.slot, ring.slots.size() - 1);
    return;
  }
  switch (view.header.kind) {
    case wire::FrameKind::open:
      on_open(ring, view);
      give_back(ring, view, moved);
      break;
    case wire::FrameKind::finish:
      on_finish(ring, view);
      give_back(ring, view, moved);
      break;
    case wire::FrameKind::message:
    case wire::FrameKind::end:
      fail_ring(worker_, ring, "a frame of a channel, of kind {}, in a ring of a session",
                static_cast<int>(view.header.kind));
      break;
    default:
      on_rows(ring, view, moved);
  }
}

void Dispatch::give_back(InRing& ring, const transport::FrameView& view,
                         MovedFrame* moved) noexcept {
  if (moved != nullptr) return worker_.overflow.free(moved->stored);
  frames_.release_in_ring(ring, view.token);
}

void Dispatch::on_open(InRing& ring, const transport::FrameView& view) {
  wire::OpenPayload open;
  std::memcpy(&open, view.payload, sizeof open);
  const uint32_t fields = wire::bytes_before_fields(view.header);
  auto format = RowFormat::of_open({view.payload, fields});
  wire::OpenFields said;
  const std::vector<std::byte> list(view.payload + fields,
                                    view.payload + fields + view.header.field_bytes);
  if (const char* const why = said.read(list, worker_.own_node().worker_count)) {
    fail_ring(worker_, ring, "an OPEN with {}", why);
    return;
  }
  const auto delivery = static_cast<Delivery>(said.delivery);
  Binding& binding = ring.slots[view.header.slot];
  // The slot may still be bound: its last query failed before it could finish (native/DESIGN.md#hc-8).
  if (binding.state == Binding::State::bound)
    inboxes_.unbind(binding.inbox->queue(ring.sender), Binding::State::discard);
  binding = Binding{Binding::State::discard, nullptr};

  const QueryId id = to_id(open.query);
  std::shared_ptr<Query> query = worker_.queries.hear(id, ring.sender_node);
  if (query == nullptr || query->failed() || query->outcome_known()) return;
  Inbox* inbox = inboxes_.find(id, open.stage);
  if (inbox != nullptr) {
    const Status status = agreement_.on_open(*inbox, ring.sender, open, delivery, format);
    if (!status.ok()) {
      worker_.queries.fail(*query, status);
      return;
    }
    if (inbox->discarding) return;
  } else {
    inbox = add_inbox(std::move(query), ring, open.stage);
    if (inbox == nullptr) return;
  }
  if (!inbox->open) {
    worker_.queries.add_unopened(*inbox->query(), worker_.number, open.stage, ring.sender,
                                 worker_.now());
  }
  bind(*inbox, ring, view.header.slot, open, delivery, std::move(format));
}

// Null, and the query fails, if that node's workers have sent to too many stages that nobody has opened here.
Inbox* Dispatch::add_inbox(std::shared_ptr<Query> query, const InRing& ring, uint32_t stage) {
  const uint64_t limit = worker_.settings.shuffle_limit;
  if (inboxes_.unopened_by(ring.sender_node) >= limit) {
    worker_.queries.fail_by_sender(*query, ring.sender_node,
                                   base::error(Code::query_unopened,
                                               "worker {} was sent rows for more than "
                                               "shuffle.limit = {} shuffles that it has not opened",
                                               worker_.number, limit)
                                       .of_stage(stage));
    return nullptr;
  }
  return &inboxes_.add(std::move(query), stage, ring.sender_node);
}

void Dispatch::fail_stage(Inbox& inbox, std::string why) {
  worker_.queries.fail(*inbox.query(),
                       Status(Code::stage_mismatch, std::move(why)).of_stage(inbox.stage()));
}

void Dispatch::bind(Inbox& inbox, InRing& ring, uint16_t slot, const wire::OpenPayload& open,
                    Delivery delivery, RowFormat format) {
  Inbox::SenderQueue& queue = inbox.queue(ring.sender);
  if (!inbox.is_sender(ring.sender)) {
    fail_stage(inbox, fmt::format("worker {} sends in stage {}, but worker {} opened it without "
                                  "that sender",
                                  ring.sender, open.stage, worker_.number));
  } else if (inbox.open && open.row_bytes != inbox.row_bytes) {
    fail_stage(inbox, fmt::format("stage {}: worker {} sends rows with row_bytes = {}, worker {} "
                                  "expects {}",
                                  open.stage, ring.sender, open.row_bytes, worker_.number,
                                  inbox.row_bytes));
  } else if (queue.bound || queue.finish_seen) {
    fail_ring(worker_, ring, "stage {} of query {} opened twice", open.stage,
              inbox.query()->id.to_string());
  } else {
    queue.bound = true;
    queue.ring = &ring;
    queue.slot = slot;
    queue.row_bytes = open.row_bytes;
    queue.opened = open;
    queue.delivery = delivery;
    queue.format = format.digest;
    if (inbox.heard.digest == 0) inbox.heard = std::move(format);
    ring.slots[slot] = Binding{Binding::State::bound, &inbox};
  }
}

void Dispatch::on_finish(InRing& ring, const transport::FrameView& view) {
  Binding& binding = ring.slots[view.header.slot];
  if (binding.state == Binding::State::unbound) {
    fail_ring(worker_, ring, "FINISH for slot {}, which is not open", view.header.slot);
    return;
  }
  // The slot is free once this has gone well: a FINISH that there was no memory for is dispatched again.
  if (binding.inbox != nullptr) finish(*binding.inbox, ring, view);
  binding = Binding{};
}

// FINISH says how many rows were sent: none is lost or comes twice (native/DESIGN.md#inv-1).
void Dispatch::finish(Inbox& inbox, const InRing& ring, const transport::FrameView& view) {
  wire::FinishPayload finish;
  std::memcpy(&finish, view.payload, sizeof finish);
  Inbox::SenderQueue& queue = inbox.queue(ring.sender);
  // Each worker of the node has some of the rows that are for any of them (NodeStreams::check_rows).
  if (queue.delivery != Delivery::node && finish.row_count != queue.rows_received) {
    worker_.queries.fail_by_sender(
        *inbox.query(), ring.sender_node,
        base::error(Code::query_failed,
                    "stage {}: worker {} sent {} rows to worker {}, but {} arrived", inbox.stage(),
                    ring.sender, finish.row_count, worker_.number, queue.rows_received)
            .of_stage(inbox.stage()));
  }
  queue.finish_seen = true;
  if (queue.ends()) inboxes_.finish(inbox, queue);
  queue.bound = false;
}

void Dispatch::on_rows(InRing& ring, const transport::FrameView& view, MovedFrame* moved) {
  const Binding binding = ring.slots[view.header.slot];
  if (binding.state == Binding::State::unbound) {
    fail_ring(worker_, ring, "rows for slot {}, which is not open", view.header.slot);
    return give_back(ring, view, moved);
  }
  if (binding.state == Binding::State::discard) {
    give_back(ring, view, moved);
    return;
  }
  Inbox& inbox = *binding.inbox;
  Inbox::SenderQueue& queue = inbox.queue(ring.sender);
  const uint64_t rows = view.header.row_count;
  const bool whole = view.header.kind == wire::FrameKind::data;
  const bool fits = !whole                 ? rows <= 1
                    : queue.row_bytes != 0 ? rows * queue.row_bytes == view.payload_bytes()
                                           : rows * sizeof(wire::RowLength) <= view.payload_bytes();
  if (!fits) {
    fail_ring(worker_, ring, "{} rows of {} bytes in a frame of {}", rows, queue.row_bytes,
              view.payload_bytes());
    return give_back(ring, view, moved);
  }
  FrameNode* const node = frames_.take();
  node->inbox = &inbox;
  node->token = view.token;
  node->kind = view.header.kind;
  node->sender = ring.sender;
  node->row_count = view.header.row_count;
  node->row_bytes = queue.row_bytes;
  node->payload_bytes = view.payload_bytes();
  if (!whole) node->payload_bytes -= sizeof node->part;
  if (moved != nullptr) {
    node->part = moved->part;
    node->stored = std::exchange(moved->stored, {});
    node->payload = node->stored.memory;  // null if it is in the file
    inbox.received()->of(ring.sender).add_spilled(node->row_count, node->payload_bytes);
  } else {
    // Read once: its sender may change the ring's memory.
    if (!whole) std::memcpy(&node->part, view.payload, sizeof node->part);
    node->payload = whole ? view.payload : view.payload + sizeof node->part;
    node->ring = &ring;
    ring.append(node);
  }
  queue.rows_received += rows;
  inbox.append(node);
}

}  // namespace faro::shuffle
