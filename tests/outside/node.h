// A node of a round: a process that does what its plan says, and talks in lines with the driver.
//
//   node                                    driver
//   listening ADDRESS                  ──▶
//                                      ◀──  nodes ADDRESS,ADDRESS,…
//   query INDEX COUNTER INCARNATION    ──▶  (of each query that this node issues)
//   opened                             ──▶
//                                      ◀──  query INDEX COUNTER INCARNATION    (of every query)
//                                      ◀──  go
//   end INDEX WORKER TROUBLED CODE TEXT ──▶ (CODE: ok if done)
//   finished ROWS                      ──▶
//                                      ◀──  close
//   broken TEXT                        ──▶  (a promise of Faro's was broken; at any time)
//                                      ◀──  where    (after the driver's time limit: what do the workers do?)
//   where TEXT                         ──▶
#pragma once

#include <cstdint>

namespace outside {

/// The whole life of a node; returns its exit code. Lines by stdin and stdout.
int run_node(uint64_t round_seed, uint32_t node);

}  // namespace outside
