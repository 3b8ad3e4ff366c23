// NodeMemory: every allocation of the nodes of a simulated cluster, counted per node, and one that can be
// made to fail. The program that links it has its operator new.
#pragma once

#include <cstdint>
#include <memory>

#include "lab/simulation/transport/sim_world.h"
#include "shuffle/overflow/spill_file.h"

namespace faro::test {

/// Counts what the fibers and agents of a world's groups allocate, from construction to destruction; a
/// group is a node. What is the network's or the test's own is left out (sim::World::Outside).
/// Threads: its world's. One at a time.
class NodeMemory {
 public:
  explicit NodeMemory(sim::World& world);
  ~NodeMemory();
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;

  /// Bytes in use now, and at most since the last reset, with what the allocator keeps beside each.
  uint64_t bytes(uint32_t node) const;
  uint64_t peak_bytes(uint32_t node) const;

  /// The n-th allocation of fibers from now on fails; 0: none.
  void fail_at(uint64_t number);
  /// The n-th allocation of fibers and of network threads from now on fails; 0: none.
  void fail_anywhere_at(uint64_t number);
  /// Whether it did.
  bool has_failed() const;
};

/// An overflow file whose disk is no memory of its node.
std::unique_ptr<shuffle::SpillFile> make_outside_file(sim::World& world,
                                                      std::unique_ptr<shuffle::SpillFile> file);

}  // namespace faro::test
