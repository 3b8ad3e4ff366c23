// LinkWants: which nodes are dialled. Each node dials those that it wants for good and that have lower numbers, for as long as
// its session is open. Another node is dialled while somebody needs the link with it: one with a higher
// number, too, which does not admit this node then, but dials it.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/settings.h"
#include "links/diallers.h"
#include "links/link_table.h"
#include "links/network.h"
#include "session/peers.h"

namespace faro::session {

/// Threads: network thread.
class LinkWants {
 public:
  /// All outlive it.
  LinkWants(links::Dialler::Owner& owner, const base::Settings& settings, Peers& peers,
            links::Network& network, const links::Identity& identity, const links::LinkTable& links)
      : settings_(settings),
        peers_(peers),
        clock_(network.reactor().clock()),
        diallers_(owner, network, identity, links) {}

  /// The session opens.
  void begin_opening();
  /// The session is open.
  void end_opening();
  /// The peer is wanted for connect.timeout_ms from now on, if it is not for good.
  void want(uint32_t peer);
  /// The peer is not to be linked any more.
  void forget(uint32_t peer);
  /// They do what Diallers::retry and stop say.
  void retry(uint32_t peer, const Status& cause) { diallers_.retry(peer, cause); }
  void stop(const links::Refusal& why) { diallers_.stop(why); }
  /// Dials, and forgets those whose time is over.
  void advance(base::Nanoseconds now);
  /// When advance has something to do.
  base::Nanoseconds next_deadline() const;

 private:
  bool is_wanted_for_good(uint32_t peer) const {
    return peers_.topology().node(peer).wanted_for_good;
  }
  void dial(uint32_t peer);

  const base::Settings& settings_;
  Peers& peers_;
  const base::Clock& clock_;
  links::Diallers diallers_;
};

}  // namespace faro::session
