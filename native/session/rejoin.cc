#include "session/rejoin.h"

#include <algorithm>

#include "base/each.h"
#include "base/error.h"
#include "base/log.h"

namespace faro::session {

template <typename Visit>
void Rejoin::for_each_open(Visit&& visit) const {
  links_.for_each([&](const links::Link& link) {
    const Peer& peer = peers_[link.place()];
    if (link.control().attached() && peer.was_open) visit(*peer.members);
  });
}

void Rejoin::hear(const links::Link& link, wire::Members members) {
  Peer& peer = peers_[link.place()];
  peer.members = std::move(members);
  peer.was_open = peer.was_open || !link.state().connected();
}

bool Rejoin::joins_open_cluster() const {
  bool any = false;
  for_each_open([&](const wire::Members&) { any = true; });
  return any;
}

bool Rejoin::missing_for_all(uint32_t peer) const {
  if (links_.find(peer) != nullptr) return false;
  bool any = false;
  bool all = true;
  for_each_open([&](const wire::Members& members) {
    any = true;
    all = all && members.missing[peer];
  });
  return any && all;
}

bool Rejoin::linked(const links::Link& link) const {
  const Peer& peer = peers_[link.place()];
  return link.state().connected() && (!peer.was_open || peer.members->linked);
}

void Departed::remember_lost(Peer& peer, uint64_t incarnation) {
  if (peer.lost.size() >= kRemembered) peer.lost.erase(peer.lost.begin());
  peer.lost.push_back(incarnation);
}

void Departed::gone(uint32_t peer, uint64_t incarnation, bool is_loss) {
  if (is_loss) remember_lost(peers_[peer], incarnation);
  peers_[peer].let_go = is_loss ? 0 : incarnation;
  begin(peer);
}

bool Departed::lose_let_go(uint32_t peer) {
  const uint64_t incarnation = peers_[peer].let_go;
  if (incarnation != 0) gone(peer, incarnation, true);
  return incarnation != 0;
}

void Departed::joins(uint32_t peer, uint64_t incarnation) {
  Peer& joining = peers_[peer];
  const uint64_t former = std::exchange(joining.let_go, 0);
  if (former != 0 && former != incarnation) remember_lost(joining, former);
  joining.is_joining = true;
}

Status Departed::check(uint32_t peer, uint64_t incarnation) const {
  const std::vector<uint64_t>& lost = peers_[peer].lost;
  if (std::ranges::find(lost, incarnation) == lost.end()) return Status::Ok();
  return base::error(Code::configuration_mismatch,
                     "{} was lost to {}, and does not come back by itself: it has to start again",
                     topology_.node(peer).name, topology_.own().name);
}

void Departed::failed_to_join(uint32_t peer, const Status& cause) {
  if (cause.code() == Code::session_closed) return;  // its old process is still closing
  const std::string& name = topology_.node(peer).name;
  uint64_t suppressed = 0;
  if (!limiter_.allows(name, clock_.now_ns(), suppressed)) return;
  base::log(LogLevel::warning, "{}: {} starts again, but is not linked: {}", topology_.own().name,
            name, cause.to_string());
}

void send_members(links::Link& link, const links::LinkTable& links, const Topology& topology) {
  const links::Link::Doing doing(link);
  std::vector<bool> missing(topology.size(), true);
  missing[topology.self()] = false;
  links.for_each([&](const links::Link& other) {
    if (other.state().connected()) missing[other.place()] = false;
  });
  link.send(wire::encode(wire::Members{link.state().connected(), std::move(missing)}));
}

void announce_members(const links::LinkTable& links, const Topology& topology) {
  base::Each each;  // one failure must not keep the others from being told
  links.for_each(
      [&](links::Link& link) { each.run([&] { send_members(link, links, topology); }); });
}

}  // namespace faro::session
