// A node of a soak: a process that opens and closes sessions and runs queries as the controller says, for
// as long as it lives.
//
//   the controller says           the node answers
//   cluster <number>              "at <address>", on which it listens for this cluster
//   open <addresses>              "open", or "failed " and why
//   begin                         the id of a query that it issues
//   run <query> <nodes> <id>      "ended <ns> <rows> <code> <message>", once its workers know how the query
//                                 ended; nodes: bits of those that take part, 0: as the seed decides
//   close                         "closed <bytes>", that its heap has in use, or "failed " and why
#pragma once

#include "lab/soak/line_socket.h"
#include "lab/soak/plan.h"

namespace faro::soak {

/// Returns when the controller has gone. `folder`: for counters and overflow.
/// Threads: one without siblings. Blocks: till then.
void run_node(uint32_t node, const Options& options, const std::string& folder,
              LineSocket controller);

}  // namespace faro::soak
