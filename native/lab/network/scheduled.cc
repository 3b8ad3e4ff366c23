#include "lab/network/scheduled.h"

#include <algorithm>

#include "lab/network/network.h"

namespace faro::network {

using transport::schedule::Phases;
using transport::schedule::Telling;
using transport::schedule::TurnMessage;

void Scheduled::begin(Network& network) {
  network_ = &network;
  const uint32_t count = network.hosts();
  for (uint32_t host = 0; host < count; ++host) {
    hosts_.push_back({Phases(settings_, host, count)});
    Phases& phases = hosts_[host].phases;
    for (uint32_t peer = 0; peer < count; ++peer) {
      if (peer != host) phases.add(peer, network.now_ns());
    }
    for (uint32_t peer = 0; peer < count; ++peer) {
      if (peer != host) phases.set_sendable(peer, bytes_left(host, peer), network.now_ns());
    }
    follow_up(host);
  }
}

uint64_t Scheduled::bytes_left(uint32_t host, uint32_t target) const {
  return uint64_t{network_->left(host, target)} * network_->shape().packet_bytes;
}

uint32_t Scheduled::next(uint32_t number) {
  Host& host = hosts_[number];
  const uint32_t target = host.phases.target();
  if (target != number)
    return host.phases.allowance(target, network_->now_ns()) != 0 ? target : kNobody;
  const uint32_t count = network_->hosts();
  if (host.phases.allowance((number + 1) % count, network_->now_ns()) == 0) return kNobody;
  for (uint32_t tried = 0; tried < count; ++tried) {
    host.little = (host.little + 1) % count;
    if (host.little != number && network_->left(number, host.little) != 0) return host.little;
  }
  return kNobody;
}

void Scheduled::on_sent(uint32_t host, uint32_t target) {
  hosts_[host].phases.sent(target, network_->shape().packet_bytes, bytes_left(host, target),
                           network_->now_ns());
  follow_up(host);
}

void Scheduled::on_note(uint32_t host, uint32_t from, const Note& note) {
  const TurnMessage message{static_cast<TurnMessage::Kind>(note.kind / 2), note.kind % 2 != 0,
                            note.count, note.number};
  static_cast<void>(hosts_[host].phases.hear(from, message, network_->now_ns()).ok());
  follow_up(host);
}

// It was set for what was the deadline then.
void Scheduled::on_alarm(uint32_t host) {
  hosts_[host].has_alarm = false;
  if (network_->now_ns() >= hosts_[host].phases.deadline())
    hosts_[host].phases.on_time(network_->now_ns());
  follow_up(host);
}

void Scheduled::follow_up(uint32_t number) {
  Host& host = hosts_[number];
  Telling telling;
  while (host.phases.take(telling)) {
    const TurnMessage& message = telling.message;
    network_->tell(number, telling.peer,
                   {2 * static_cast<uint32_t>(message.kind) + (message.has_begun ? 1 : 0),
                    message.quiet_nodes, message.turn});
  }
  const base::Nanoseconds deadline = host.phases.deadline();
  if (host.has_alarm || deadline == base::kForever) return;
  host.has_alarm = true;
  network_->set_alarm(number, std::max(deadline, network_->now_ns()));
}

}  // namespace faro::network
