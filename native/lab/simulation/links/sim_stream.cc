#include "lab/simulation/links/sim_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lab/simulation/links/sim_network.h"

namespace faro::sim {

SimStream::SimStream(SimNetwork& network, uint32_t peer_node, std::string peer_address)
    : world_(network.world_),
      faults_(network.internet_.fabric().faults()),
      network_(&network),
      node_(network.node_),
      peer_node_(peer_node),
      peer_address_(std::move(peer_address)) {}

void SimStream::wake_network() {
  if (network_ != nullptr) network_->wake();
}

void SimStream::set_handler(Handler* handler) {
  handler_ = handler;
  if (has_news()) wake_network();
}

void SimStream::send(std::span<const std::byte> message) {
  if (detached_ || lost_ || !failure_.ok()) return;
  const World::Outside outside(world_);  // what is under way is the network's
  untaken_bytes_ += message.size();
  if (untaken_bytes_ > kUntakenLimit) {
    failure_ = Status(Code::peer_lost,
                      fmt::format("the peer does not take control messages: {} bytes are queued",
                                  untaken_bytes_));
    send_end("the connection was reset");
    wake_network();
    return;
  }
  ++queued_count_;
  last_departure_ =
      std::max(last_departure_, world_.now() + world_.knobs().control.draw(world_.random()) / 4);
  world_.schedule(
      last_departure_, "control message leaves",
      [self = shared_from_this(), copy = Message(message.begin(), message.end())]() mutable {
        self->leave(std::move(copy));
      });
}

void SimStream::leave(Message message) {
  if (lost_) return;  // with its connection, or its process
  --queued_count_;
  wake_network();  // somebody may wait for flushed()
  // On this side of the wire, or on the other.
  const bool is_cut =
      faults_.take_break(node_, peer_node_, SimFaults::Wire::control) == SimFaults::Break::cut;
  if (is_cut && world_.random().one_in(2)) return break_off();
  if (faults_.take_hostile(node_, peer_node_)) make_hostile(message);
  world_.schedule(next_arrival(), "control message arrives",
                  [peer = peer_, is_cut, message = std::move(message)]() mutable {
                    const auto stream = peer.lock();
                    if (stream == nullptr) return;
                    is_cut ? stream->break_off() : stream->arrive(std::move(message));
                  });
}

// In order, after a while, and not while the line is silent.
Nanoseconds SimStream::next_arrival() {
  const Nanoseconds when = world_.now() + world_.knobs().control.draw(world_.random());
  last_arrival_ = std::max({last_arrival_, when, faults_.silent_until(node_, peer_node_)});
  return last_arrival_;
}

void SimStream::make_hostile(Message& message) {
  Random& random = world_.random();
  switch (random.below(4)) {
    case 0:
      message.resize(random.below(message.size() + 1));
      break;
    case 1:
      message.resize(message.size() + random.between(1, 64), std::byte{0xA5});
      break;
    case 2:
      for (std::byte& b : message) b = static_cast<std::byte>(random.next());
      break;
    default:
      if (!message.empty())
        message[random.below(message.size())] = static_cast<std::byte>(random.next());
  }
}

void SimStream::arrive(Message message) {
  if (detached_ || network_ == nullptr || !failure_.ok()) return;
  arrived_.push_back(std::move(message));
  wake_network();
}

void SimStream::arrive_end(const char* cause) {
  if (detached_ || network_ == nullptr || !failure_.ok()) return;
  failure_ = Status(Code::peer_lost, cause);
  wake_network();
}

// Behind everything that leaves.
void SimStream::send_end(const char* cause) {
  const World::Outside outside(world_);
  last_departure_ = std::max(last_departure_, world_.now());
  world_.schedule(last_departure_, "control connection ends", [self = shared_from_this(), cause] {
    self->world_.schedule(self->next_arrival(), "end of control connection arrives",
                          [peer = self->peer_, cause] {
                            if (const auto stream = peer.lock()) stream->arrive_end(cause);
                          });
  });
}

void SimStream::detach() {
  if (detached_) return;
  detached_ = true;
  handler_ = nullptr;
  arrived_.clear();
  send_end("the peer closed the connection");
}

void SimStream::cut() {
  network_ = nullptr;
  lose_what_is_queued();
}

void SimStream::break_off() {
  lose_what_is_queued();
  arrive_end("the connection was reset");
}

void SimStream::lose_what_is_queued() {
  if (lost_) return;
  lost_ = true;
  queued_count_ = 0;
  last_departure_ = world_.now();
  if (!detached_) send_end("the connection was reset");
}

void SimStream::deliver(uint64_t most) {
  const std::shared_ptr<SimStream> self = shared_from_this();  // the handler may destroy the handle
  for (; most > 0 && has_news() && !arrived_.empty(); --most) {
    const Message message = std::move(arrived_.front());
    arrived_.pop_front();
    if (const auto peer = peer_.lock()) {
      // A hostile message has another size than the one that was sent.
      peer->untaken_bytes_ -= std::min<uint64_t>(peer->untaken_bytes_, message.size());
    }
    handler_->on_message(message);
  }
  if (has_news() && arrived_.empty()) {
    told_ = true;
    handler_->on_closed(failure_);
  }
}

}  // namespace faro::sim
