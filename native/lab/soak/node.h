// A node of a soak: a process that opens and closes sessions and runs queries as the controller says, for
// as long as it lives.
//
//   the controller says           the node answers
//   cluster <number>              "at <address>", on which it listens for this cluster
//   open <addresses>              "open", or "failed " and why
//   return <number> <addresses>   the same, for a cluster that is running, at the address that this node had in it
//   begin                         "query " and the id of a query that it issues
//   run <query> <nodes> <id>      "ended <ns> <rows> <code> <message>", once its workers know how the query
//                                 ended, and whatever it is told meanwhile; nodes: bits of those that take part, 0: as the
//                                 seed decides
//   add <node> <address>          "ok", or "failed " and why; the same for all that follow
//   await <node>                  once queries may contain it
//   drain <node>                  at once
//   drained <node>                once that is done
//   remove <node>                 once that is done
//   look                          "heap <bytes>" that are in use
//   close                         "closed <bytes>" of the heap that are in use then, or "failed " and why
#pragma once

#include "lab/soak/line_socket.h"
#include "lab/soak/plan.h"

namespace faro::soak {

/// Ends the process when the controller has gone. `folder`: for counters and overflow.
/// Threads: one without siblings. Blocks: till then.
[[noreturn]] void run_node(uint32_t node, const Options& options, const std::string& folder,
                           LineSocket controller);

}  // namespace faro::soak
