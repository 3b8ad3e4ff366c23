#include "lab/network/network.h"

#include <utility>

namespace faro::network {

Network::Network(const NetworkShape& shape, Load load, Sending& sending)
    : shape_(shape),
      load_(std::move(load)),
      sending_(sending),
      switch_(shape.between, shape.hosts, shape.seed),
      chance_(workload::mix(shape.seed, 1)),
      cards_(shape.hosts) {
  sending_.begin(*this);
  for (uint32_t host = 0; host < hosts(); ++host) wake(host);
}

void Network::run(base::Nanoseconds until) {
  settle();
  while (!events_.empty() && events_.top().at <= until) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.at;
    happen(event);
    if (events_.empty() || events_.top().at != now_) settle();
  }
}

void Network::add(base::Nanoseconds at, What what, uint32_t host, uint32_t other, Note note) {
  events_.push({at, order_++, what, host, other, note});
}

void Network::tell(uint32_t from, uint32_t to, const Note& note) {
  ++told_;
  add(now_ + shape_.note_ns, What::note, to, from, note);
}

void Network::set_alarm(uint32_t host, base::Nanoseconds at) { add(at, What::alarm, host); }

void Network::wake(uint32_t host) {
  if (std::exchange(cards_[host].is_woken, true)) return;
  woken_.push_back(host);
}

void Network::settle() {
  switch_.begin_transfers([&](const Packet& packet) {
    add(now_ + shape_.packet_ns(), What::passed, packet.source, packet.target);
  });
  for (size_t i = 0; i < woken_.size(); ++i) {
    cards_[woken_[i]].is_woken = false;
    begin_packet(woken_[i]);
  }
  woken_.clear();
}

void Network::begin_packet(uint32_t host) {
  if (cards_[host].is_busy || !switch_.has_credit(host)) return;
  const uint32_t target = sending_.next(host);
  if (target == kNobody) return;
  if (left(host, target) != kEndless) --left_of(host, target);
  cards_[host].is_busy = true;
  switch_.take_credit(host);
  add(now_ + shape_.packet_ns(), What::sent, host, target);
}

void Network::on_sent(uint32_t host, uint32_t target) {
  if (!switch_.arrive({host, target})) {
    ++lost_;
    add(now_ + shape_.retry_ns, What::retry, host, target);
  }
  sending_.on_sent(host, target);
  if (chance_.below(1000) < shape_.pauses_per_mille) {
    add(now_ + shape_.packet_ns() * chance_.between(1, 3), What::pause_over, host);
    return;
  }
  cards_[host].is_busy = false;
}

void Network::happen(const Event& event) {
  const uint32_t host = event.host;
  switch (event.what) {
    case What::sent:
      on_sent(host, event.other);
      break;
    case What::pause_over:
      cards_[host].is_busy = false;
      break;
    case What::passed:
      switch_.end({host, event.other});
      ++delivered_;
      last_delivery_ = now_;
      sending_.on_delivered(host, event.other);
      break;
    case What::retry:
      if (left(host, event.other) != kEndless) ++left_of(host, event.other);
      sending_.on_lost(host, event.other);
      break;
    case What::note:
      sending_.on_note(host, event.other, event.note);
      break;
    case What::alarm:
      sending_.on_alarm(host);
      break;
  }
  wake(host);
}

}  // namespace faro::network
