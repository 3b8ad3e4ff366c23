#include "session/link_wants.h"

#include <algorithm>

namespace faro::session {

// One whose port is not known has to come by itself.
void LinkWants::dial(uint32_t peer) {
  const bool is_dialled = topology_.dials(peer) || settings_.nodes_change();
  if (is_dialled && !has_any_port(topology_.address(peer)))
    diallers_.add(peer, topology_.address(peer));
}

void LinkWants::begin_opening() {
  if (settings_.nodes_change() && settings_.wait_for == "none") return;
  topology_.for_each_peer([&](uint32_t peer) { dial(peer); });
}

void LinkWants::end_opening() {
  if (!settings_.nodes_change()) return;
  // A node that is missing for the others may only not be linked with them.
  topology_.for_each_peer([&](uint32_t peer) {
    diallers_.remove(peer);
    if (settings_.wait_for == "all") want(peer);
  });
}

void LinkWants::want(uint32_t peer) {
  if (!settings_.nodes_change()) return;
  const bool is_new = !until_.contains(peer);
  until_[peer] =
      base::deadline_after(clock_.now_ns(), settings_.connect_timeout_ms * uint64_t{1'000'000});
  if (is_new) dial(peer);
}

void LinkWants::forget(uint32_t peer) {
  until_.erase(peer);
  diallers_.remove(peer);
}

void LinkWants::advance(base::Nanoseconds now) {
  for (auto at = until_.begin(); at != until_.end();) {
    const auto wanted = at++;
    if (now >= wanted->second) forget(wanted->first);
  }
  diallers_.advance(now);
}

base::Nanoseconds LinkWants::next_deadline() const {
  base::Nanoseconds next = diallers_.next_deadline();
  for (const auto& [peer, until] : until_) next = std::min(next, until);
  return next;
}

}  // namespace faro::session
