#include "lab/simulation/transport/sim_port.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <span>
#include <utility>

#include "base/planted.h"
#include "ring/doorbell.h"
#include "ring/ready_set.h"
#include "transport/mirrored_ring.h"

namespace faro::sim {
namespace {

constexpr std::align_val_t kRingAlignment{64};
constexpr int kGivenBack = 0xdb;  // what rings are full of that were given back

/// Calls visit(offset, bytes) for the one or two runs of memory that [from, to) takes in a ring.
template <typename Visit>
void for_each_run(uint32_t ring_bytes, Position from, Position to, Visit&& visit) {
  while (from < to) {
    const uint64_t offset = from & (ring_bytes - 1);
    const uint64_t bytes = std::min<uint64_t>(to - from, ring_bytes - offset);
    visit(offset, bytes);
    from += bytes;
  }
}

// What a hostile end could say instead of `position`.
Position hostile_position(Random& random, Position position) {
  switch (random.below(4)) {
    case 0:
      return random.next();
    case 1:
      return position + random.between(1, 4) * wire::kFrameAlignment;
    case 2:
      return position - std::min(position, random.between(1, 4) * wire::kFrameAlignment);
    default:
      return position + 1;
  }
}

// Some bytes, at the beginning most of all: that is where headers are.
void scribble(Random& random, std::byte* base, uint32_t ring_bytes, Position from, Position to) {
  const uint64_t span = random.one_in(2) ? std::min<uint64_t>(to - from, 32) : to - from;
  for (uint64_t count = random.between(1, 8); count > 0; --count) {
    base[(from + random.below(span)) & (ring_bytes - 1)] = static_cast<std::byte>(random.next());
  }
}

// What the delivery that is due does to the data connection.
SimFaults::Break next_break(World& world, SimFaults& faults, uint32_t from, uint32_t to) {
  if (world.knobs().rings_stand) return SimFaults::Break::none;
  return faults.take_break(from, to, SimFaults::Wire::data);
}

}  // namespace

void SimPort::FreeMemory::operator()(std::byte* memory) const noexcept {
  ::operator delete[](memory, kRingAlignment);
}

SimPort::Memory SimPort::allocate(uint64_t bytes) {
  Memory memory(static_cast<std::byte*>(::operator new[](bytes, kRingAlignment)));
  std::memset(memory.get(), 0, bytes);
  return memory;
}

SimPort::SimPort(World& world, SimFaults& faults, uint32_t node, transport::LinkContext& context,
                 std::shared_ptr<SimTurns> turns)
    : world_(world),
      faults_(faults),
      node_(node),
      context_(context),
      outgoing_(context.outgoing),
      incoming_(context.incoming),
      outgoing_memory_(allocate(outgoing_.region_bytes())),
      incoming_memory_(allocate(incoming_.region_bytes())),
      sending_(outgoing_.ring_count()),
      receiving_(incoming_.ring_count()),
      // Rings that stand are shared memory, over which there are no turns.
      turns_(*this,
             context.agreed.turns && !world.knobs().rings_stand ? std::move(turns) : nullptr),
      life_(faults.life(node)) {}

SimPort::~SimPort() {
  std::memset(outgoing_memory_.get(), kGivenBack, outgoing_.region_bytes());
  std::memset(incoming_memory_.get(), kGivenBack, incoming_.region_bytes());
  if (!base::planted(base::Plant::link_given_back)) return;
  (void)outgoing_memory_.release();  // somebody may look there
  (void)incoming_memory_.release();
}

void SimPort::transfer(uint32_t ring, Position to) {
  Sending& s = sending_[ring];
  const bool is_more = std::exchange(s.wanted, to) != to;
  if (gone() || path_.connection != Connection::stands) return;
  if (!turns_) {
    if (s.may_start(world_.knobs().transfers_in_flight)) start_transfer(ring);
  } else if (is_more) {
    turns_.send_rows();
    turns_.send_what_is_due();
  }
}

void SimPort::start_transfer(uint32_t ring) {
  const World::Outside outside(world_);  // what is under way is the network's
  Sending& s = sending_[ring];
  const Knobs& knobs = world_.knobs();
  Random& random = world_.random();
  const Position from = s.started;
  const Position to = s.wanted;
  s.started = to;
  ++s.in_flight;
  transport::count(*s.transfers);

  const Nanoseconds now = world_.now();
  Nanoseconds all_placed = now;
  const uint64_t lines = (to - from) / wire::kFrameAlignment;
  const uint64_t pieces = std::min<uint64_t>(random.between(1, knobs.pieces_most), lines);
  Position piece = from;
  for (uint64_t i = 1; i <= pieces; ++i) {
    const Position end = from + lines * i / pieces * wire::kFrameAlignment;
    const Nanoseconds when = arrival(knobs.placement.draw(random));
    all_placed = std::max(all_placed, when);
    world_.schedule(
        when, "bytes arrive",
        over_connection([ring, piece, end, expected = digest(ring, piece, end)](SimPort& port) {
          port.place(ring, piece, end, expected);
        }));
    piece = end;
  }
  s.last_notification = std::max(s.last_notification, all_placed + knobs.notification.draw(random));
  world_.schedule(s.last_notification, "notification",
                  over_connection([ring, to](SimPort& port) { port.notify(ring, to); }));
  s.last_completion = std::max(s.last_completion, all_placed + knobs.completion.draw(random));
  world_.schedule(s.last_completion, "completion",
                  over_connection([ring, from, to, expected = digest(ring, from, to)](
                                      SimPort& port) { port.complete(ring, from, to, expected); }));
}

uint64_t SimPort::digest(uint32_t ring, Position from, Position to) const {
  const std::byte* base = outgoing_memory_.get() + outgoing_.base_offset(ring);
  uint64_t hash = from;
  for_each_run(outgoing_.ring_bytes, from, to, [&](uint64_t offset, uint64_t bytes) {
    // Positions are multiples of 64, so are runs.
    for (uint64_t i = 0; i < bytes; i += sizeof(uint64_t)) {
      uint64_t word;
      std::memcpy(&word, base + offset + i, sizeof word);
      hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 32;
    }
  });
  return hash;
}

void SimPort::check_unchanged(uint32_t ring, Position from, Position to, uint64_t expected,
                              const char* when) {
  if (digest(ring, from, to) == expected) return;
  world_.violation(
      fmt::format("node {} to {}, ring {}: bytes {} … {} of the outgoing ring were changed {}",
                  node_, peer_node_, ring, from, to, when));
}

Nanoseconds SimPort::arrival(Nanoseconds delay) const {
  return std::max(world_.now() + delay, faults_.silent_until(node_, peer_node_));
}

std::shared_ptr<SimPort> SimPort::reach_peer() {
  if (gone() || path_.is_dark) return nullptr;
  std::shared_ptr<SimPort> peer = peer_.lock();
  if (peer != nullptr && peer->path_.connection != Connection::stands) return nullptr;  // it closes
  if (peer != nullptr && !peer->gone()) return peer;
  fail(Status(Code::peer_lost, "the other end of the data connection is closed"));
  return nullptr;
}

std::shared_ptr<SimPort> SimPort::deliver() {
  std::shared_ptr<SimPort> peer = reach_peer();
  const bool arrives =
      peer != nullptr && !break_off(*peer, next_break(world_, faults_, node_, peer_node_));
  if (!arrives) return nullptr;
  peer->path_.is_heard = true;
  return peer;
}

void SimPort::place(uint32_t ring, Position from, Position to, uint64_t expected) {
  const std::shared_ptr<SimPort> peer = reach_peer();
  if (peer == nullptr) return;
  check_unchanged(ring, from, to, expected, "before they were transferred");
  if (to - peer->receiving_[ring].released > outgoing_.ring_bytes &&
      !faults_.distrusted(node_, peer_node_)) {
    world_.violation(fmt::format(
        "node {} to {}, ring {}: bytes {} … {} arrive where the receiver has released "
        "only up to {} (ring of {} bytes)",
        node_, peer_node_, ring, from, to, peer->receiving_[ring].released, outgoing_.ring_bytes));
    return;
  }
  const bool is_narrow =
      !world_.knobs().rings_stand && faults_.is_narrow(node_, peer_node_, world_.now());
  const SimFaults::Break broken =
      is_narrow ? SimFaults::Break::dark : next_break(world_, faults_, node_, peer_node_);
  if (broken != SimFaults::Break::none) to = from + world_.random().below(to - from);
  for_each_run(outgoing_.ring_bytes, from, to, [&](uint64_t offset, uint64_t bytes) {
    std::memcpy(peer->incoming_base(ring) + offset, outgoing_base(ring) + offset, bytes);
  });
  peer->path_.is_heard = true;
  if (break_off(*peer, broken)) return;
  if (delivers_hostile())
    scribble(world_.random(), peer->incoming_base(ring), outgoing_.ring_bytes, from, to);
}

void SimPort::notify(uint32_t ring, Position to) {
  const std::shared_ptr<SimPort> peer = deliver();
  if (peer == nullptr) return;
  const uint32_t number = peer->incoming_.receiver_of(ring);
  const transport::ReceivingEnd end = peer->context_.end(number);
  const uint32_t first = peer->context_.ready_group[number] * ring::ReadySet::kRingsPerGroup;
  if (delivers_hostile()) to = hostile_position(world_.random(), to);
  // R1 of native/DESIGN.md#memory-orders.
  peer->receiving_[ring].written.store(to, std::memory_order_seq_cst);
  end.ready->mark(first + peer->incoming_.index_at_receiver(ring));
  ring::ring_one_for_frames(end.doorbells, peer->turn_);
  world_.note_progress();
}

void SimPort::complete(uint32_t ring, Position from, Position to, uint64_t expected) {
  Sending& s = sending_[ring];
  --s.in_flight;
  if (reach_peer() == nullptr) return;
  check_unchanged(ring, from, to, expected, "before their transfer had completed");
  s.completed = to;
  show_free_space(ring);
  if (s.started == s.wanted) return;
  if (!turns_) return start_transfer(ring);
  turns_.send_rows();
  turns_.send_what_is_due();
}

void SimPort::tell_read(uint32_t ring, Position read) {
  if (gone()) return;
  const World::Outside outside(world_);
  Receiving& r = receiving_[ring];
  r.released = read;
  if (path_.connection != Connection::stands) return;  // the peer looks when it goes on
  r.last_read_notification = std::max(
      r.last_read_notification, arrival(world_.knobs().read_notification.draw(world_.random())));
  world_.schedule(
      r.last_read_notification, "read notification", over_connection([ring, read](SimPort& port) {
        const auto peer = port.deliver();
        if (peer == nullptr) return;
        peer->on_read_notification(
            ring, port.delivers_hostile() ? hostile_position(port.world_.random(), read) : read);
      }));
}

void SimPort::on_read_notification(uint32_t ring, Position read) {
  sending_[ring].told_read = read;
  show_free_space(ring);
}

void SimPort::show_free_space(uint32_t ring) {
  Sending& s = sending_[ring];
  const Position free = std::min(s.told_read, s.completed);
  if (free == s.peer_read.load(std::memory_order_relaxed)) return;
  // R1 of native/DESIGN.md#memory-orders.
  s.peer_read.store(free, std::memory_order_seq_cst);
  ring::ring_doorbell(*context_.workers[outgoing_.sender_of(ring)].doorbell);
  world_.note_progress();
}

void SimPort::fail(const Status& cause) {
  if (gone() || failed_) return;
  failed_ = true;
  turns_.leave();
  if (context_.events != nullptr) context_.events->on_link_failed(cause);
}

// ------------------------------------------------------------------------------------------ mending

std::function<void()> SimPort::over_connection(std::function<void(SimPort&)> arrives) {
  return [self = weak_from_this(), given_up = path_.given_up, arrives = std::move(arrives)] {
    const std::shared_ptr<SimPort> port = self.lock();
    const bool stands = port != nullptr && port->path_.connection == Connection::stands;
    if (stands && port->path_.given_up == given_up) arrives(*port);
  };
}

bool SimPort::break_off(SimPort& peer, SimFaults::Break how) {
  if (how == SimFaults::Break::cut) cut();
  if (how == SimFaults::Break::dark) {  // in this direction, or in both
    path_.is_dark = true;
    if (world_.random().one_in(2)) peer.path_.is_dark = true;
  }
  return how != SimFaults::Break::none;
}

transport::Pulse SimPort::take_pulse() {
  if (world_.knobs().rings_stand || !context_.agreed.signs) return transport::Pulse::unknown;
  const World::Outside outside(world_);
  const bool stands = path_.connection == Connection::stands && !gone();
  if (stands) {
    world_.schedule(arrival(world_.knobs().notification.draw(world_.random())), "sign of life",
                    over_connection([](SimPort& port) { (void)port.deliver(); }));
  }
  const bool is_heard = std::exchange(path_.is_heard, false) && stands;
  path_.tally.beat(is_heard);
  if (path_.tally.is_stuck()) return transport::Pulse::stuck;
  return is_heard ? transport::Pulse::heard : transport::Pulse::none;
}

// One end finds out at once, the other later.
void SimPort::cut() {
  const Status cause(Code::peer_lost, "the data connection was cut");
  const std::shared_ptr<SimPort> peer = peer_.lock();
  path_.connection = peer->path_.connection = Connection::broken;
  SimPort& first = world_.random().one_in(2) ? *this : *peer;
  SimPort& second = &first == this ? *peer : *this;
  first.fail(cause);
  world_.schedule(arrival(world_.knobs().control.draw(world_.random())),
                  "end of data connection arrives",
                  [self = second.weak_from_this(), given_up = second.path_.given_up, cause] {
                    const std::shared_ptr<SimPort> port = self.lock();
                    if (port != nullptr && port->path_.given_up == given_up) port->fail(cause);
                  });
}

void SimPort::give_up_connection() {
  if (std::exchange(path_.has_gone_on, false)) path_.tally.broke();
  turns_.leave();
  path_.connection = Connection::broken;
  ++path_.given_up;
}

Status SimPort::take_connection() {
  const std::shared_ptr<SimPort> peer = peer_.lock();
  if (peer == nullptr || peer->gone())
    return Status(Code::peer_lost, "the other end of the data connection is closed");
  path_.connection = Connection::waits_for_peer;
  turns_.enter();
  if (peer->path_.connection != Connection::waits_for_peer) return Status::Ok();
  path_.connection = peer->path_.connection = Connection::stands;
  go_on(*peer);
  peer->go_on(*this);
  for (SimPort* const each : {this, peer.get()}) {
    if (!each->turns_) continue;
    each->turns_.send_due();
    each->turns_.send_what_is_due();
  }
  return Status::Ok();
}

// What the peer was told of has arrived. The rest is transferred again, of which it may have some bytes.
void SimPort::go_on(SimPort& peer) {
  failed_ = path_.is_dark = path_.is_heard = false;
  path_.has_gone_on = true;
  uint64_t delivered = 0;
  uint64_t arrived = 0;
  bool owes = false;
  for (uint32_t ring = 0; ring < sending_.size(); ++ring) {
    if (base::planted(base::Plant::frame_resent)) resend_last_frame(ring, peer);
    Sending& s = sending_[ring];
    // Hostile bytes may stand behind what was sent; whoever reads them ends the link.
    const Position sent = s.started;
    s.started = s.completed =
        std::min(peer.receiving_[ring].written.load(std::memory_order_relaxed), s.wanted);
    delivered += s.started;
    owes = owes || s.started < sent;
    s.told_read = peer.receiving_[ring].released;
    s.in_flight = 0;
    show_free_space(ring);
    if (!turns_ && s.started != s.wanted) start_transfer(ring);
  }
  for (const Receiving& each : receiving_) arrived += each.written.load(std::memory_order_relaxed);
  path_.tally.resumed(delivered, arrived, owes);
}

// A bug that is planted: as if the peer had named the beginning of its last frame as its position, over a connection whose
// bytes lie behind each other in its ring. Only if that frame is there and unread, and there is room.
void SimPort::resend_last_frame(uint32_t ring, SimPort& peer) {
  Receiving& r = peer.receiving_[ring];
  const Position end = r.written.load(std::memory_order_relaxed);
  const auto offset_of = [&](Position at) { return at & (outgoing_.ring_bytes - 1); };
  uint64_t bytes = 0;
  for (Position at = r.released; at < end; at += bytes)
    bytes = wire::padded(wire::load_header(outgoing_base(ring) + offset_of(at)).length);
  const bool fits = end + bytes - r.released <= outgoing_.ring_bytes &&
                    offset_of(end) + bytes <= outgoing_.ring_bytes;
  if (bytes == 0 || !fits || sending_[ring].wanted < end) return;
  std::memcpy(peer.incoming_base(ring) + offset_of(end),
              outgoing_base(ring) + offset_of(end - bytes), bytes);
  notify(ring, end + bytes);
}

}  // namespace faro::sim
