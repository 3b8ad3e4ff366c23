// Return: how a node that starts again finds its place in a cluster whose sessions are open, and how the
// others take it back. README.md has the picture.
#include <fmt/format.h>

#include <utility>

#include "base/log.h"
#include "session/cluster_membership.h"
#include "session/limits.h"

namespace faro::session {

// ------------------------------------------------------------------------- the node that starts again

// Somebody's session is open already: who is missing there need not come.
bool ClusterMembership::returning() const {
  bool any = false;
  for_each_link([&](const Link& link) { any = any || (link.attached() && link.peer_was_open()); });
  return any;
}

// A peer that is gone need not come back if the others' sessions are open, or if its own was: then it may have
// been the first of them that was found.
bool ClusterMembership::returns_without(const Link& gone) const {
  return phase_ == Phase::opening && (returning() || gone.peer_was_open());
}

// A node that is lost to one and linked with another is there: all have to say the same.
bool ClusterMembership::missing_for_all(const Link& link) const {
  if (link.state() != LinkState::apart || !returning()) return false;
  bool missing = true;
  for_each_link([&](const Link& other) {
    if (other.attached() && other.peer_was_open())
      missing = missing && other.members()->missing[link.node()];
  });
  return missing;
}

bool ClusterMembership::all_known() const {
  bool all = true;
  for_each_link([&](const Link& link) {
    all = all && (link.state() != LinkState::apart || missing_for_all(link));
  });
  return all;
}

// A link that is up here is up there a moment later. Whoever joins an open cluster waits for it: from then
// on nobody takes a query of this incarnation for one of another.
bool ClusterMembership::all_linked() const {
  bool all = true;
  for_each_link([&](const Link& link) {
    const bool linked =
        link.state() == LinkState::up && (!link.peer_was_open() || link.members()->linked);
    all = all && (linked || missing_for_all(link));
  });
  return all;
}

// ------------------------------------------------------------------------------------------ the others

std::vector<bool> ClusterMembership::missing_nodes() const {
  std::vector<bool> missing(nodes_.size());
  for_each_link([&](const Link& link) { missing[link.node()] = !link.connected(); });
  return missing;
}

// What has changed matters to those whose sessions are not open yet.
void ClusterMembership::tell_members() const {
  const std::vector<bool> missing = missing_nodes();
  for_each_link([&](Link& link) { link.send_members(missing); });
}

// Whether there is room for one more link, in an open session; if not, the peer is told.
bool ClusterMembership::welcome(Link& link, const transport::Transport& transport) {
  if (phase_ == Phase::opening) return true;
  const Status room =
      check_need({.memory_bytes = transport.memory_bytes(link.outgoing(), link.incoming()),
                  .descriptors = kDescriptorsPerLink,
                  .pinned_bytes = transport.pinned_bytes(link.outgoing(), link.incoming())});
  if (!room.ok()) give_up(link, room);
  return room.ok();
}

// Lost or left: whoever starts again in its place gets another link.
void ClusterMembership::replace_link(Link& link) {
  const uint32_t node = link.node();
  if (link.data() != nullptr) absences_[node] = {link.peer().incarnation, false};
  retry_later(node, Status(Code::connect_failed, "it was lost"));
  if (allocated_ && phase_ == Phase::open) counters::set(counters_->peer(node).connected, 0);
  std::shared_ptr<Link> next = make_link(node);
  std::shared_ptr<transport::DataLink> absent;
  if (link.data() != nullptr)
    absent = std::make_shared<transport::AbsentLink>(static_cast<uint32_t>(settings_.ring_bytes),
                                                     *link.data());
  {
    const std::lock_guard lock(links_mutex_);
    links_[node].swap(next);
    if (absent != nullptr) absent_links_[node].swap(absent);
  }
  link_changes_.fetch_add(1, std::memory_order_release);
  if (phase_ == Phase::open) observer_.on_links_changed();
}

// No link with an admitted peer: what open ends with, or what the peer's does.
void ClusterMembership::give_up(Link& link, const Status& cause) {
  if (phase_ == Phase::opening) return fail_open(cause);
  link.fail(cause);
}

void ClusterMembership::log_no_return(const Link& link, const Status& cause) {
  if (cause.code() == Code::session_closed) return;  // it still closes: nobody starts again yet
  uint64_t suppressed = 0;
  if (!limiter_.allows(link.name(), clock().now_ns(), suppressed)) return;
  base::log(LogLevel::warning, "{}: {} starts again, but is not linked: {}", identity_.name,
            link.name(), cause.to_string());
}

}  // namespace faro::session
