// FaultNode: a node of a cluster of which one, the victim, meets with a fault. A process that does what
// its test tells it by lines, and answers by lines.
//
//   worker 0 of each node shuffles with those of all nodes; it goes through the phases below
//   worker 1 of nodes 0 and 1 shuffles with the other one: what has to go on, whatever happens to node 2
//   nodes 0 and 1 have a session of their own beside, which has to go on as well
//   where the nodes of the session may change, node 3, the guest, shuffles with nodes 0 and 1, by worker 1
//
//   the test says              the node answers
//   begin, begin pair          the id of a query, of the cluster or of the session beside
//   query <id>                 (nothing yet) worker 0 takes part in it from now on
//   hit                        (nothing) the victim was hit
//   go on                      (nothing) the victim need not stay in its phase any more
//   others <id> <id>           "others well": a query of the other workers, and one of the session beside
//   add <node> <address>       (nothing) so are told of a node,
//   drain <node>               (nothing) of one that is drained,
//   remove <node>              (nothing) of one that is removed
//   with guest <id>            (nothing yet) worker 1 takes part in the query of the guest, which is declared before the next line
//   guest                      "guest well": that query has ended with its rows, and nobody has lost the guest
//   await <node>               "ok": it is linked
//   told <event> <node>        "<event> <node>", once the session has told it
//   count <event> <node>       how often it has
//   wait <ms>                  "waited", after so long
//   outcome                    "done", or "failed " and why, once it is known how the query ended; as
//                              often as it is asked
//   close                      "well": closed, and nothing is left in this process
//
// Whatever should not be is answered as "complaint: " and what.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "faro/session.h"
#include "support/child.h"
#include "support/session_cluster.h"

namespace faro::test {

/// What the victim is doing when it is hit: it says "there" and its worker makes no call until "go on".
/// The others do the same without staying.
enum class Phase {
  opened,      // connected, nothing else
  first_rows,  // shuffles are open, first rows are on their way
  mid,         // everybody sends and takes, the victim too
  overflow,    // everybody holds a batch and has sent far more than rings and memory take
  finished,    // it has sent all and finished, and does not take
  ended,       // it waits for the outcome of the query
  closing,     // the query is over for all; it closes its session
};
inline constexpr Phase kPhases[] = {Phase::opened,   Phase::first_rows, Phase::mid,
                                    Phase::overflow, Phase::finished,   Phase::ended,
                                    Phase::closing};
inline constexpr const char* kPhaseNames[] = {"opened",   "first_rows", "mid",    "overflow",
                                              "finished", "ended",      "closing"};

inline constexpr uint32_t kFaultNodes = 3;
inline constexpr uint32_t kVictim = 2;
inline constexpr uint32_t kGuest = 3;  // comes and goes, and is in no query of the others

struct FaultNodePlan {
  uint32_t node = 0;
  std::string addresses;         // of those that it opens its session with
  std::string beside_addresses;  // of nodes 0 and 1 in the session beside
  SettingList settings;          // of both
  Phase phase = Phase::opened;   // in which the victim is hit
};

/// Says "open", or "failed " and why; then obeys. `beside`: of nodes 0 and 1. Returns the exit code.
int run_fault_node(const FaultNodePlan& plan, ListeningSocket listener,
                   std::optional<ListeningSocket> beside, const Child::Side& test);

}  // namespace faro::test
