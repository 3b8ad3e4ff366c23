#include "lab/network/grants.h"

#include <algorithm>

#include "lab/network/network.h"

namespace faro::network {

void Grants::begin(Network& network) {
  network_ = &network;
  const uint32_t count = network.hosts();
  nearly_ = 2 * network.shape().note_ns / network.shape().packet_ns() + 1;
  receivers_.resize(count);
  senders_.resize(count);
  for (uint32_t host = 0; host < count; ++host) {
    receivers_[host].asked.resize(count);
    receivers_[host].last = host;
    for (uint32_t target = 0; target < count; ++target) {
      if (target != host) senders_[host].in_all += network.left(host, target);
    }
    for (uint32_t i = 1; i < count; ++i) {
      const uint32_t target = (host + i) % count;
      if (network.left(host, target) == 0) continue;
      network.tell(host, target, {ask, network.left(host, target), senders_[host].in_all});
    }
  }
}

uint32_t Grants::next(uint32_t host) {
  const std::deque<Turn>& turns = senders_[host].turns;
  return turns.empty() ? kNobody : turns.front().target;
}

void Grants::on_sent(uint32_t host, uint32_t /*target*/) {
  Sender& sender = senders_[host];
  if (--sender.turns.front().left == 0) sender.turns.pop_front();
  --sender.granted;
  --sender.in_all;
  if (sender.granted > nearly_) return;
  for (const uint32_t receiver : sender.to_tell)
    network_->tell(host, receiver, {free, 0, sender.in_all});
  sender.to_tell.clear();
}

void Grants::on_delivered(uint32_t /*source*/, uint32_t target) {
  --receivers_[target].expected;
  make_offer(target);
}

void Grants::make_offer(uint32_t host) {
  Receiver& receiver = receivers_[host];
  if (receiver.has_offered || receiver.expected > nearly_) return;
  const uint32_t count = network_->hosts();
  uint32_t best = kNobody;
  // The nodes before this one by number, so that receivers who know nothing yet ask different senders.
  for (uint32_t i = 1; i <= count; ++i) {
    const uint32_t from = (receiver.last + count - i) % count;
    const Asked& asked = receiver.asked[from];
    if (asked.left == 0 || asked.is_busy) continue;
    if (best == kNobody || asked.in_all > receiver.asked[best].in_all) best = from;
  }
  if (best == kNobody) return;
  receiver.has_offered = true;
  receiver.last = best;
  const uint64_t packets = std::min<uint64_t>(turn_packets_, receiver.asked[best].left);
  network_->tell(host, best, {offer, static_cast<uint32_t>(packets), 0});
}

void Grants::on_offer(uint32_t host, uint32_t from, uint64_t packets) {
  Sender& sender = senders_[host];
  const bool is_busy = sender.granted > nearly_;
  if (is_busy) {
    sender.to_tell.push_back(from);
  } else {
    sender.turns.push_back({from, packets});
    sender.granted += packets;
  }
  network_->tell(host, from,
                 {is_busy ? busy : accept, static_cast<uint32_t>(packets), sender.in_all});
}

void Grants::on_note(uint32_t host, uint32_t from, const Note& note) {
  if (note.kind == offer) return on_offer(host, from, note.count);
  Receiver& receiver = receivers_[host];
  Asked& asked = receiver.asked[from];
  asked.in_all = note.number;
  asked.is_busy = note.kind == busy;
  if (note.kind == ask) asked.left = note.count;
  if (note.kind == accept || note.kind == busy) receiver.has_offered = false;
  if (note.kind == accept) {
    if (asked.left != Network::kEndless) asked.left -= note.count;
    receiver.expected += note.count;
  }
  make_offer(host);
}

}  // namespace faro::network
