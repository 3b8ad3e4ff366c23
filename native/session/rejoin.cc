#include "session/rejoin.h"

#include "base/each.h"

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
