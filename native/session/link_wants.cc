#include "session/link_wants.h"

#include <algorithm>

namespace faro::session {

// One whose port is not known has to come by itself.
void LinkWants::dial(uint32_t peer) {
  if ((peers_.topology().dials(peer) || !is_wanted_for_good(peer)) &&
      !has_any_port(peers_.address(peer)))
    diallers_.add(peer, peers_.address(peer));
}

void LinkWants::begin_opening() {
  peers_.for_each_wanted_at_open([&](uint32_t peer) { dial(peer); });
}

void LinkWants::end_opening() {
  // A node that is missing for the others may only not be linked with them.
  peers_.for_each_peer([&](uint32_t peer) {
    if (is_wanted_for_good(peer)) return;
    diallers_.remove(peer);
    if (settings_.wait_for == "all") want(peer);
  });
}

void LinkWants::want(uint32_t peer) {
  if (is_wanted_for_good(peer)) return;
  const bool is_new = peers_.wanted_until(peer) == 0;
  peers_.want(peer, base::deadline_after(clock_.now_ns(),
                                         settings_.connect_timeout_ms * base::kMillisecond));
  if (is_new) dial(peer);
}

void LinkWants::forget(uint32_t peer) {
  peers_.forget_want(peer);
  diallers_.remove(peer);
}

void LinkWants::advance(base::Nanoseconds now) {
  if (now >= peers_.first_wanted_until()) {
    peers_.for_each_peer([&](uint32_t peer) {
      const base::Nanoseconds until = peers_.wanted_until(peer);
      if (until != 0 && now >= until) forget(peer);
    });
  }
  diallers_.advance(now);
}

base::Nanoseconds LinkWants::next_deadline() const {
  return std::min(diallers_.next_deadline(), peers_.first_wanted_until());
}

}  // namespace faro::session
