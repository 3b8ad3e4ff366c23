#include "shuffle/receive/node_end.h"

#include <new>
#include <utility>

#include "base/planted.h"

namespace faro::shuffle {

using base::Plant;
using base::planted;  // false, except in the test that plants bugs: base/planted.h

namespace {

constexpr uint32_t kPerGroup = ring::ReadySet::kRingsPerGroup;

// All ends have the same groups of ready numbers.
constexpr uint32_t kAnyEnd = 0;

uint32_t groups_of(const ring::Layout& rings) {
  return (rings.rings_of_receiver() + kPerGroup - 1) / kPerGroup;
}

}  // namespace

// ---------------------------------------------------------------------------------------- the right

NodeEnd::NodeEnd(session::Membership& membership, QueryTable& queries, Overflow& overflow)
    : membership_(membership),
      made_(membership.nodes().size()),
      ready_(*membership.node_ready_set()),
      links_(membership.nodes().size()),
      readers_(membership),
      streams_(membership, queries, overflow, readers_),
      report_(membership, readers_) {
  for (const session::Node& node : membership.nodes())
    node_of_group_.insert(node_of_group_.end(), groups_of(membership.incoming_layout(node.number)),
                          node.number);
}

// Nobody is at it any more. It keeps the right, so that what is given back is not looked at.
NodeEnd::~NodeEnd() {
  (void)take_right();
  for (uint32_t node = 0; node < links_.size(); ++node) detach(node);
  for (NodeRing* ring = asked_.load(std::memory_order_relaxed); ring != nullptr;) {
    NodeRing* const next = ring->next_asked_;
    const std::shared_ptr<NodeLink> last = std::move(ring->keeps_);
    ring = next;
  }
}

std::shared_ptr<NodeLink> NodeEnd::link(uint32_t node,
                                        const std::shared_ptr<transport::DataLink>& carrier) {
  if (carrier->is_absent()) return nullptr;
  const std::lock_guard lock(links_mutex_);
  std::shared_ptr<NodeLink> link = made_[node].lock();
  if (link != nullptr && link->carrier() == carrier) return link;
  link = std::make_shared<NodeLink>(*this, membership_, node, carrier);
  made_[node] = link;
  return link;
}

bool NodeEnd::take_right() noexcept {
  bool taken = false;
  return taken_.compare_exchange_strong(taken, true, std::memory_order_seq_cst);
}

NodeEnd::Turn::Turn(NodeEnd& end, bool stores) noexcept
    : end_(end), stores_(stores), has_(end.take_right()) {
  if (!has_) {
    end_.due_.store(true, std::memory_order_seq_cst);  // W1
    has_ = end_.take_right();                          // W2
  }
  if (has_) end_.stores_ = stores_;
}

NodeEnd::Turn::~Turn() {
  if (!has_) return;
  end_.taken_.store(false, std::memory_order_seq_cst);  // W3
  while (end_.due_.load(std::memory_order_seq_cst) && !planted(Plant::last_look_left_out) &&
         end_.take_right()) {  // W4
    end_.stores_ = stores_;
    end_.look_with_right();
    end_.taken_.store(false, std::memory_order_seq_cst);  // W3
  }
}

void NodeEnd::look() noexcept {
  const Turn turn(*this);
  if (turn) look_with_right();
}

// The ring is not destroyed before it is settled.
void NodeEnd::settle_later(NodeRing& ring) noexcept {
  if (!ring.is_asked_.exchange(true, std::memory_order_seq_cst)) {
    ring.keeps_ = ring.link_.shared_from_this();
    ring.next_asked_ = asked_.load(std::memory_order_relaxed);
    while (!asked_.compare_exchange_weak(ring.next_asked_, &ring, std::memory_order_seq_cst)) {
    }
  }
  if (!planted(Plant::release_untried)) look();
}

// Who looked in vain is told if something waits for it. What this worker leaves to others it wakes one of them for, who does so again:
// as many wake as there is something for.
bool NodeEnd::take(uint32_t local_worker, const Take& take) {
  readers_.want(local_worker);
  const Turn turn(*this);
  if (!turn) return false;
  readers_.looks(local_worker);
  look_with_right();
  if (readers_.first(local_worker) == nullptr) return true;
  const base::Nanoseconds at = membership_.clock().now_ns();
  try {
    for (NodeReader* reader = readers_.first(local_worker); reader != nullptr;) {
      NodeReader* const next = reader->waiting_next;
      NodeStream& stream = *reader->stream;
      bool is_there = true;
      while (is_there && stream.available(*reader) != nullptr && take(*reader, *reader->next))
        is_there = streams_.taken(*reader, at);
      if (is_there && !planted(Plant::not_passed_on)) readers_.wake_one(stream);
      reader = next;
    }
  } catch (const std::bad_alloc&) {
    readers_.wake();
    throw;
  }
  readers_.wake();
  return true;
}

void NodeEnd::look_in_place_of(uint32_t local_worker) noexcept {
  const Turn turn(*this);
  if (!turn) return;
  look_with_right();
  for (NodeReader* reader = readers_.first(local_worker); reader != nullptr;
       reader = reader->waiting_next)
    readers_.wake_one(*reader->stream);
}

void NodeEnd::tend() noexcept {
  const Turn turn(*this, false);
  if (!turn) return;
  look_with_right();
  report_.show();
}

// ------------------------------------------------------------------------------------ with the right

// A link for which there is no memory is attached by a later look.
void NodeEnd::look_with_right() noexcept {
  const bool has_others = due_.exchange(false, std::memory_order_seq_cst);
  settle();
  try {
    attach_links();
  } catch (const std::bad_alloc&) {
  }
  if (stores_) ready_.take([this](uint32_t number) { sort_marked(number); });
  if (sweeps_.exchange(false, std::memory_order_seq_cst)) streams_.sweep();
  if (has_others && stores_) readers_.note_who_could_not_look();
  // Who is woken looks, and sorts.
  if (!stores_ && (std::exchange(deferred_, false) || has_others)) readers_.note_everybody();
  readers_.wake();
}

void NodeEnd::settle() noexcept {
  NodeRing* ring = asked_.exchange(nullptr, std::memory_order_seq_cst);
  while (ring != nullptr) {
    NodeRing* const next = ring->next_asked_;
    const std::shared_ptr<NodeLink> link = std::move(ring->keeps_);
    // What is asked later is settled later.
    ring->is_asked_.store(false, std::memory_order_seq_cst);
    ring->settle();
    if (ring->is_full() && links_[link->node()] == link) sort(*ring);
    ring = next;
  }
}

void NodeEnd::attach_links() {
  const uint64_t changes = membership_.link_changes();
  if (attached_ && changes == changes_seen_) return;
  for (uint32_t node = 0; node < links_.size(); ++node) attach(node);
  attached_ = true;
  changes_seen_ = changes;
}

void NodeEnd::attach(uint32_t node) {
  const std::shared_ptr<transport::DataLink> carrier = membership_.link(node);
  if (links_[node] != nullptr && links_[node]->carrier() == carrier) return;
  detach(node);
  std::shared_ptr<NodeLink> made = link(node, carrier);
  if (made == nullptr) return;
  carrier->attach_ready(ready_, membership_.first_ready(node, kAnyEnd) / kPerGroup,
                        membership_.incoming_layout(node).receiver_ends - 1);
  links_[node] = std::move(made);
  // Frames may have come, and been marked, before.
  for (uint32_t ring = 0; ring < links_[node]->ring_count(); ++ring) sort(links_[node]->ring(ring));
}

// The ready words of the link go before its memory may, and so does all that was not taken: QueryTable decides which queries the
// loss fails.
void NodeEnd::detach(uint32_t node) noexcept {
  if (links_[node] == nullptr) return;
  const uint32_t first = membership_.first_ready(node, kAnyEnd) / kPerGroup;
  const uint32_t groups = groups_of(membership_.incoming_layout(node));
  for (uint32_t group = first; group < first + groups; ++group) ready_.clear_external(group);
  for (uint32_t ring = 0; ring < links_[node]->ring_count(); ++ring)
    streams_.drop_all(links_[node]->ring(ring));
  links_[node] = nullptr;
}

// --- sorting

void NodeEnd::sort_marked(uint32_t number) noexcept {
  const uint32_t node = node_of_group_[number / kPerGroup];
  const uint32_t ring = number - membership_.first_ready(node, kAnyEnd);
  if (links_[node] != nullptr && ring < links_[node]->ring_count()) sort(links_[node]->ring(ring));
}

// A frame for which there is no memory waits in the ring, and so do the frames behind it. With what has come the sender has less room,
// and may wait for what was given back before and was not worth telling.
void NodeEnd::sort(NodeRing& ring) noexcept {
  if (!stores_) {
    deferred_ = true;
    return sort_again(ring);
  }
  bool any = false;
  try {
    for (NodeFrame* frame = ring.next(); frame != nullptr; frame = ring.next()) {
      ring.unsorted_ = frame;
      streams_.sort(ring, *frame);
      ring.unsorted_ = nullptr;
      any = true;
    }
    if (any) ring.tell();
  } catch (const std::bad_alloc&) {
    sort_again(ring);
  }
  if (!streams_.store_begun_rows(ring)) sort_again(ring);
}

// At the next look, which need not be marked.
void NodeEnd::sort_again(NodeRing& ring) noexcept {
  ready_.mark(membership_.first_ready(ring.link().node(), kAnyEnd) + ring.number());
}

// --- to overflow

bool NodeEnd::move(const NodeStreams::Move& move) {
  const Turn turn(*this);
  if (!turn) return false;
  look_with_right();
  bool moved = false;
  for (uint32_t worker = 0; worker < readers_.worker_count(); ++worker) {
    for (NodeReader* reader = readers_.first(worker); reader != nullptr;
         reader = reader->waiting_next) {
      if (reader->stream->ring->may_block_sender()) moved |= streams_.move(*reader->stream, move);
    }
  }
  return moved;
}

}  // namespace faro::shuffle
