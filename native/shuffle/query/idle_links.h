// IdleLinks: links that no query needs are let go, where nodes are linked on demand. Nobody is lost by that: who needs such a
// link next has it made again (link_waits.h).
//
//   the node with the lower number                         the other one
//   nothing has needed the link for link.idle_ms:
//   asks. Sends nothing more: queries that begin
//   wait for the node, as for one that is not linked
//   REST ask             ---------------------------->     needs it: REST no
//                        <----------------------------     else waits and sends nothing more, too: REST yes
//   no: goes on where it stopped
//   yes: says BYE        ---------------------------->     both have let it go
//
// So no row and no message is on its way when the link ends. Until then it is held: to senders its rings are full. Whichever
// way it ends once this node has agreed, by BYE or because it breaks, it has been let go.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "base/clock.h"
#include "shuffle/query/known_queries.h"
#include "shuffle/query/outbound.h"
#include "shuffle/query/query_context.h"
#include "wire/query_message.h"

namespace faro::shuffle {

/// Threads: under the table's lock.
class IdleLinks {
 public:
  /// As QueryEnvironment::hold_link.
  using Hold = std::function<bool(uint32_t node, bool held)>;

  /// Both outlive it. `idle`: after how long a link is let go; 0: this node asks for none.
  IdleLinks(QueryContext& context, const KnownQueries& known, Hold hold, base::Nanoseconds idle)
      : context_(context), known_(known), hold_(std::move(hold)), idle_(idle) {}

  /// Asks the peers whose links have been idle for so long.
  void tick(Outbound& out);
  /// What a peer says. Untrusted. Returns whether it needs a link that this node has asked for: the link is as it was.
  bool hear(uint32_t peer, wire::RestStep step, Outbound& out);
  /// This node is to end the link with a peer, which has agreed.
  bool is_let_go(uint32_t peer) const { return agreed_.contains(peer) && asks(peer); }
  /// The link with a peer ends. Returns whether both had agreed to that.
  bool ends(uint32_t peer);
  /// The peer is lost, or linked anew.
  void forget(uint32_t peer);

 private:
  bool is_needed(uint32_t node) const;
  /// Of the two it is this node that asks.
  bool asks(uint32_t peer) const { return peer > context_.cluster.own(); }
  void ask(uint32_t peer, Outbound& out);
  void answer(uint32_t peer, Outbound& out);

  QueryContext& context_;
  const KnownQueries& known_;
  const Hold hold_;
  const base::Nanoseconds idle_;
  std::map<uint32_t, base::Nanoseconds> idle_since_;  // by peer
  std::set<uint32_t> asked_;                          // who have not answered
  std::set<uint32_t> agreed_;                         // whose links have not ended yet
};

}  // namespace faro::shuffle
