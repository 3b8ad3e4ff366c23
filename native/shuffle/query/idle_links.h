// IdleLinks: links that no query needs are let go, unless they are wanted for good. Nobody is lost by that: who needs such a
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
// So no row and no message is on its way when the link ends. Until then it is held: to senders its rings are full. Until the
// answer has come the other one is there as before, and its messages count; what is to be said to it is kept. Whichever way the
// link ends once this node has agreed, by BYE or because it breaks, it has been let go. A peer that leaves a step out for as long
// as a node may take to be linked breaks the rules: its link ends.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "session/peers.h"
#include "shuffle/query/known_queries.h"
#include "shuffle/query/outbound.h"
#include "shuffle/query/query_context.h"
#include "wire/query_message.h"

namespace faro::shuffle {

/// How far each link is stands in the record of its node (cluster_view.h). Threads: under the table's lock.
class IdleLinks {
 public:
  /// Does what QueryEnvironment::rest says.
  using Rest = std::function<std::optional<session::PeerView>(uint32_t, session::Peers::Event)>;

  struct Times {
    base::Nanoseconds idle = 0;   // after how long a link is let go; 0: this node asks for none
    base::Nanoseconds limit = 0;  // for each step of the peer
  };

  /// Both outlive it.
  IdleLinks(QueryContext& context, const KnownQueries& known, Rest rest, const Times& times)
      : context_(context), known_(known), rest_(std::move(rest)), times_(times) {}

  /// Asks the peers whose links have been idle for so long. Ends the links of those that owe a step.
  void tick(Outbound& out);
  /// What a peer says. Untrusted. Returns whether it needs a link that this node has asked for: the link is as it was.
  bool hear(uint32_t peer, wire::RestStep step, Outbound& out);

 private:
  bool is_needed(uint32_t node) const;
  /// Whether it is this node that asks, not the peer.
  bool asks(uint32_t peer) const { return peer > context_.cluster.own(); }
  void expire(Outbound& out);
  void ask(uint32_t peer, Outbound& out);
  void answer(uint32_t peer, Outbound& out);
  bool take(uint32_t peer, session::Peers::Event step);

  QueryContext& context_;
  const KnownQueries& known_;
  const Rest rest_;
  const Times times_;
};

}  // namespace faro::shuffle
