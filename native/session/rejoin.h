// How a node that starts again finds its place in a cluster whose sessions are open, and how the others
// take it back. README.md, "Return", has the picture.
//
//   Rejoin     of the node that starts: what the peers say whose sessions are open already
//   Departed   of the others: which processes were lost, which nodes are coming back, and which of these fail to
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "faro/status.h"
#include "links/link_table.h"
#include "links/log_limiter.h"
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

  /// Somebody's session is open already: who is missing there need not come.
  bool joins_open_cluster() const;
  /// A peer that is gone need not come back if the others' sessions are open, or if its own was: then
  /// it may have been the first of them that was found.
  bool goes_on_without(const links::Link& gone) const {
    return joins_open_cluster() || peers_[gone.place()].was_open;
  }
  /// A node that is lost to one and linked with another is there: all have to say the same.
  bool missing_for_all(uint32_t peer) const;
  /// The link is up. Whoever joins an open cluster waits for the other side, too: from then on nobody
  /// takes a query of this incarnation for one of another.
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

/// Threads: network thread.
class Departed {
 public:
  /// Outlives it.
  explicit Departed(const Topology& topology) : topology_(topology), peers_(topology.size()) {}

  void lost(uint32_t peer, uint64_t incarnation) { peers_[peer] = {incarnation, false}; }
  /// Why this process may not be linked; Ok: it may. A process that was lost does not come back by itself:
  /// its node has to start again.
  Status check(uint32_t peer, uint64_t incarnation) const;
  /// Another process of that node is linked; its own session is not open yet.
  void joins(uint32_t peer) { peers_[peer].is_joining = true; }
  /// Its session is open. Whether it was joining.
  bool has_opened(uint32_t peer) { return std::exchange(peers_[peer].is_joining, false); }
  /// The node has started again, but could not be linked, because of `cause`. Logs that, not too often.
  void failed_to_join(uint32_t peer, const Status& cause, base::Nanoseconds now);

 private:
  struct Peer {
    uint64_t incarnation = 0;  // that was lost; 0: none was
    bool is_joining = false;
  };
  const Topology& topology_;
  std::vector<Peer> peers_;
  links::LogLimiter limiter_;
};

/// Tells the peer which nodes are not linked with this one. Whose session is not open yet wants to know.
void send_members(links::Link& link, const links::LinkTable& links, const Topology& topology);
/// Tells all of them, when that has changed.
void announce_members(const links::LinkTable& links, const Topology& topology);

}  // namespace faro::session
