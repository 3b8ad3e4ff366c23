// How a node that starts again finds its place in a cluster whose sessions are open, and how the others
// link with it again. README.md, "Return", has the picture.
//
//   Rejoin     at the node that starts: what the peers say whose sessions are already open
//   Departed   at the others: which processes were lost, and which nodes are coming back or fail to
#pragma once

#include <cstdint>
#include <optional>
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

/// Threads: network thread.
class Departed {
 public:
  /// Both outlive it.
  Departed(const Topology& topology, const base::Clock& clock)
      : topology_(topology), clock_(clock), peers_(topology.size()) {}

  /// The link with this process has ended. `is_loss`: else it was let go, and the process may come back.
  void gone(uint32_t peer, uint64_t incarnation, bool is_loss);
  /// A process whose link was let go does not come back either: the number is taken from the node, or it refuses this
  /// process. Returns whether there is one.
  bool lose_let_go(uint32_t peer);
  /// Why this process may not be linked; Ok: it may. A process that was lost does not come back by itself:
  /// its node has to start again.
  Status check(uint32_t peer, uint64_t incarnation) const;
  /// Another process of that node is admitted.
  void begin(uint32_t peer) { peers_[peer].is_joining = peers_[peer].is_open = false; }
  /// This process is linked. Its own session may not be open yet. Another one of that node, whose link was let go, is lost.
  void joins(uint32_t peer, uint64_t incarnation);
  /// Its session is open, and it is linked there, too.
  void has_opened(uint32_t peer) { peers_[peer].is_open = true; }
  /// Whether both have happened since this was last asked.
  bool has_returned(uint32_t peer) {
    return peers_[peer].is_open && std::exchange(peers_[peer].is_joining, false);
  }
  /// The node has started again, but could not be linked, because of `cause`. Logs that, not too often.
  void failed_to_join(uint32_t peer, const Status& cause);

 private:
  struct Peer {
    std::vector<uint64_t> lost;  // incarnations, the latest last
    uint64_t let_go = 0;         // incarnation whose link was, last; 0: none
    bool is_joining = false;
    bool is_open = false;
  };
  /// How many lost processes of a number are remembered. A process that was lost dials again at once or never.
  static constexpr size_t kRemembered = 64;

  static void remember_lost(Peer& peer, uint64_t incarnation);

  const Topology& topology_;
  const base::Clock& clock_;
  std::vector<Peer> peers_;
  links::LogLimiter limiter_;
};

/// Tells the peer which nodes are not linked with this one. A peer whose session is still opening needs that.
void send_members(links::Link& link, const links::LinkTable& links, const Topology& topology);
/// Tells all peers; call it whenever that has changed.
void announce_members(const links::LinkTable& links, const Topology& topology);

}  // namespace faro::session
