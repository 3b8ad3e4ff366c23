// Rejoin: how a node that starts again finds its place in a cluster whose sessions are open: by what the peers say whose
// sessions are. README.md, "Return", has the picture.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "links/link_table.h"
#include "session/topology.h"
#include "wire/control.h"

namespace faro::session {

/// While a session opens. Threads: the opening thread.
class Rejoin {
 public:
  explicit Rejoin(const links::LinkTable& links) : links_(links), peers_(links.peers()) {}

  /// The peer of a new link has said nothing yet.
  void begin(const links::Link& link) { peers_[link.place()] = {}; }
  void hear(const links::Link& link, wire::Members members);

  /// Some peer's session is already open, so open need not wait for a node that is missing there.
  bool joins_open_cluster() const;
  /// open need not wait for a lost peer if the others' sessions are open, or if its own was: it may be the first of the
  /// open ones that this node found.
  bool goes_on_without(const links::Link& gone) const {
    return joins_open_cluster() || peers_[gone.place()].was_open;
  }
  /// All peers with open sessions say that the node is missing. If one is still linked with it, it is present.
  bool missing_for_all(uint32_t peer) const;
  /// The link is up. A node that joins an open cluster also waits for the other side's confirmation. After that no
  /// node confuses a query of this incarnation with one of an earlier incarnation.
  bool linked(const links::Link& link) const;

 private:
  struct Peer {
    std::optional<wire::Members> members;  // what it told last; none: its session is not open
    bool was_open = false;  // before the link was up: it had lost this node, or never had it
  };

  template <typename Visit>
  void for_each_open(Visit&& visit) const;

  const links::LinkTable& links_;
  std::vector<Peer> peers_;
};

/// Tells the peer which nodes are not linked with this one. A peer whose session is still opening needs that.
void send_members(links::Link& link, const links::LinkTable& links, const Topology& topology);
/// Tells all peers; call it whenever that has changed.
void announce_members(const links::LinkTable& links, const Topology& topology);

}  // namespace faro::session
