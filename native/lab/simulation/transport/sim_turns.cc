#include "lab/simulation/transport/sim_turns.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lab/simulation/transport/sim_port.h"

namespace faro::sim {

using transport::schedule::TurnMessage;
using transport::schedule::Turns;

// ---------------------------------------------------------------------------------------- of a node

SimTurns::SimTurns(World& world, TurnWatch& watch, transport::Reactor& reactor,
                   const transport::schedule::PhaseSettings& settings, uint32_t self,
                   uint32_t node_count)
    : world_(world), watch_(watch), reactor_(&reactor), turns_(settings, self, node_count, *this) {
  watch_.add(self, turns_);
}

void SimTurns::note_unread(const std::shared_ptr<SimPort>& port) {
  if (reactor_ == nullptr) return;
  {
    const World::Outside outside(world_);
    unread_.push_back(port);
  }
  reactor_->defer([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->read();
  });
}

void SimTurns::read() {
  if (unread_.empty()) return;
  {
    const World::Outside outside(world_);
    for (const auto& weak : std::exchange(unread_, {})) {
      if (const auto port = weak.lock()) port->turns().read();
    }
  }
  turns_.send_due();
}

void SimTurns::set(base::Nanoseconds at, base::Nanoseconds) noexcept {
  world_.schedule(at, "alarm of turns", [weak = weak_from_this(), number = ++alarms_] {
    const auto self = weak.lock();
    if (self == nullptr || self->alarms_ != number || self->reactor_ == nullptr) return;
    self->reactor_->defer([weak] {
      if (const auto at_work = weak.lock()) at_work->turns_.on_alarm(at_work->world_.now());
    });
  });
}

// ---------------------------------------------------------------------------------------- of a port

SimPort::InTurns::InTurns(SimPort& port, std::shared_ptr<SimTurns> node)
    : port_(port), node_(std::move(node)) {}

uint32_t SimPort::InTurns::peer() const noexcept { return port_.context_.peer_node; }

void SimPort::InTurns::enter() {
  if (node_ == nullptr) return;
  has_entered_ = true;
  node_->turns().enter(peer(), *this, port_.world_.now());
  if (!unread_.empty()) node_->note_unread(port_.shared_from_this());
  send_what_is_due();
}

void SimPort::InTurns::leave() noexcept {
  if (node_ == nullptr) return;
  has_entered_ = false;
  unread_.clear();
  node_->turns().leave(peer(), *this, port_.world_.now());
}

void SimPort::InTurns::remove() noexcept {
  if (node_ != nullptr) node_->turns().remove(peer(), *this, port_.world_.now());
}

void SimPort::InTurns::send_what_is_due() noexcept {
  if (node_ != nullptr) node_->turns().send_due();
}

void SimPort::InTurns::send_due() noexcept {
  if (port_.gone() || port_.path_.connection != Connection::stands) return;
  tell();
  send_rows();
}

// What is left stays as it is: Turns has it sent in this node's turn.
void SimPort::InTurns::send_rows() {
  const Nanoseconds now = port_.world_.now();
  const Turns::Allowance allowed = node_->turns().ask(peer(), pending_rows(), now);
  uint64_t sent = 0;
  uint32_t last_ring = 0;
  const auto rings = static_cast<uint32_t>(port_.sending_.size());
  for (uint32_t i = 0; i < rings && sent < allowed.bytes; ++i) {
    const uint32_t ring = (first_ring_ + i) % rings;
    const Sending& sending = port_.sending_[ring];
    if (!sending.may_start(port_.world_.knobs().transfers_in_flight)) continue;
    sent += sending.wanted - sending.started;
    port_.start_transfer(ring);
    last_ring = ring;
  }
  if (sent == 0) return;
  first_ring_ = (last_ring + 1) % rings;
  if (node_->watch().note_sent(port_.node_, peer(), sent, allowed.is_turn) &&
      port_.world_.knobs().one_sender_at_a_time)
    port_.world_.violation(fmt::format("node {} sends to node {} in its turn, and so does another",
                                       port_.node_, peer()));
  node_->turns().sent(peer(), {sent, allowed.is_turn}, pending_rows(), now);
}

uint64_t SimPort::InTurns::pending_rows() const noexcept {
  uint64_t bytes = 0;
  for (const Sending& ring : port_.sending_) bytes += ring.wanted - ring.started;
  return bytes;
}

void SimPort::InTurns::tell() {
  TurnMessage message;
  if (!node_->turns().take_message(peer(), message)) return;
  World& world = port_.world_;
  const World::Outside outside(world);
  // Hearing it again changes nothing.
  for (int times = world.random().one_in(8) ? 2 : 1; times > 0; --times) {
    last_message_ = std::max(last_message_,
                             port_.arrival(world.knobs().read_notification.draw(world.random())));
    world.schedule(last_message_, "turn", port_.over_connection([message](SimPort& port) {
      const std::shared_ptr<SimPort> peer = port.deliver();
      if (peer == nullptr) return;
      peer->turns_.arrive(port.delivers_hostile() ? hostile_turn(port.world_.random(), message)
                                                  : message);
    }));
  }
}

// What a hostile node could say instead.
TurnMessage SimPort::InTurns::hostile_turn(Random& random, TurnMessage message) {
  switch (random.below(4)) {
    case 0:
      message.turn = random.next();
      break;
    case 1:
      message.turn += random.between(1, 1000);
      break;
    case 2:
      message.quiet_nodes = static_cast<uint32_t>(random.below(20));
      break;
    default:
      message.kind = static_cast<TurnMessage::Kind>(random.below(4));
  }
  return message;
}

// It may come before this side has taken its link.
void SimPort::InTurns::arrive(const TurnMessage& message) {
  if (node_ == nullptr) return;
  unread_.push_back(message);
  if (has_entered_) node_->note_unread(port_.shared_from_this());
}

void SimPort::InTurns::read() {
  while (has_entered_ && !unread_.empty()) {
    const TurnMessage message = unread_.front();
    unread_.pop_front();
    if (port_.gone()) continue;
    const Status heard = node_->turns().hear(peer(), message, port_.world_.now());
    if (!heard.ok()) port_.fail(heard);
  }
}

}  // namespace faro::sim
