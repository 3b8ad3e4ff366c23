// ClusterOpening: which nodes a node still waits for while its session opens, why, and when it gives up. It
// exists only until the session is open.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/settings.h"
#include "faro/cancellation.h"
#include "faro/status.h"
#include "links/handshake.h"
#include "links/link_table.h"
#include "links/network.h"
#include "links/resolution.h"
#include "session/peers.h"
#include "session/rejoin.h"

namespace faro::session {

/// Threads: the opening thread. Blocks: never.
class ClusterOpening {
 public:
  struct Failure {
    Status status;
    /// Starting this node again may succeed, so the others may keep waiting for it.
    bool retry = false;
  };

  /// All outlive it. connect.timeout_ms begins now.
  ClusterOpening(const base::Settings& settings, const Peers& peers, links::Network& network,
                 const links::LinkTable& links);

  base::Nanoseconds since() const { return since_; }
  /// When check has something to do.
  base::Nanoseconds next_deadline() const { return std::min(deadline_, notice_); }
  /// Why open fails now; nothing if it does not. If opening takes long, logs once which nodes are missing.
  std::optional<Failure> check(base::Nanoseconds now, const Cancellation& cancellation);

  /// Every peer is admitted, or all nodes with open sessions say that it is missing; or this node waits for nobody
  /// (connect.wait_for).
  bool all_known() const;
  /// Every peer is linked, or all nodes with open sessions say that it is missing; or as above.
  bool all_linked() const;

  /// Open fails with this, unless something has failed before. `spreads`: it concerns the whole
  /// cluster, not this node only.
  void fail(const Status& status, bool spreads = true);
  bool failed() const { return !fatal_.ok(); }
  /// What peers that connect after open has failed are told.
  std::optional<links::Refusal> refusal() const;

  // --- what happens to peers

  /// The peer is not linked, because of `cause`.
  void note_disconnected(uint32_t peer, const Status& cause) { peers_[peer].last = cause; }
  /// The answer of an unauthenticated process at the peer's address.
  void note_claim(uint32_t peer, const Status& claim);
  void note_refused(const std::string& from, const links::Refusal& refusal);
  void on_admitted(const links::Link& link);
  /// A peer that was dialled refuses this node, or is refused by it. Returns whether to dial it again.
  bool on_dial_refused(uint32_t peer, const links::Refusal& refusal);
  /// An admitted peer has lost its connection. Returns whether to try again.
  bool on_detached(const links::Link& link, const Status& cause, bool final);
  /// Return whether this node continues without the peer.
  bool on_lost(const links::Link& link, const Status& cause);
  bool on_left(const links::Link& link);
  void on_members(const links::Link& link, wire::Members members) {
    rejoin_.hear(link, std::move(members));
  }

 private:
  struct Peer {
    Status last;           // why it is not connected
    Status ending;         // what it said when it first gave up or refused, which tells most
    int number_taken = 0;  // refusals in a row
  };

  Status missing() const;
  std::string missing_peers() const;
  std::string why_missing(uint32_t peer) const;
  void look_up_missing();

  const base::Settings& settings_;
  const Peers& nodes_;
  links::Network& network_;
  const links::LinkTable& links_;
  const base::Nanoseconds since_;
  const base::Nanoseconds deadline_;
  base::Nanoseconds notice_;
  const bool waits_;  // for other nodes
  Rejoin rejoin_;
  std::vector<Peer> peers_;
  std::vector<std::unique_ptr<links::Resolution>> look_ups_;  // of hosts of missing nodes
  Status fatal_;                                              // why open has failed
  bool spreads_ = true;                                       // fatal_ does
  Status last_refused_;  // the last refusal: often of the missing node
};

}  // namespace faro::session
