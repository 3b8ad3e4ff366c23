#include "lab/network/phases_with_barrier.h"

#include "lab/network/network.h"

namespace faro::network {

void PhasesWithBarrier::begin(Network& network) {
  network_ = &network;
  enter_phase();
}

bool PhasesWithBarrier::has_more(uint32_t host) const {
  return sent_[host] != turn_packets_ &&
         network_->left(host, (host + phase_) % network_->hosts()) != 0;
}

void PhasesWithBarrier::enter_phase() {
  sent_.assign(network_->hosts(), 0);
  is_done_.assign(network_->hosts(), true);
  waited_for_ = 0;
  for (uint32_t host = 0; host < network_->hosts(); ++host) {
    if (!has_more(host)) continue;
    is_done_[host] = false;
    ++waited_for_;
    network_->wake(host);
  }
}

uint32_t PhasesWithBarrier::next(uint32_t host) {
  return is_done_[host] ? kNobody : (host + phase_) % network_->hosts();
}

// The word of the last one takes as long as a note.
void PhasesWithBarrier::on_sent(uint32_t host, uint32_t /*target*/) {
  ++sent_[host];
  if (has_more(host)) return;
  is_done_[host] = true;
  if (--waited_for_ == 0) network_->set_alarm(host, network_->now_ns() + network_->shape().note_ns);
}

// Phases in which nobody has anything are left out: all that these cost others is a note each.
void PhasesWithBarrier::on_alarm(uint32_t /*host*/) {
  for (uint32_t tried = 1; tried < network_->hosts(); ++tried) {
    phase_ = phase_ % (network_->hosts() - 1) + 1;
    enter_phase();
    if (waited_for_ != 0) return;
  }
}

}  // namespace faro::network
