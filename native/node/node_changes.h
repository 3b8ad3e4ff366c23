// NodeChanges: what an engine does about nodes that come and go: faro::Nodes, and waiting for one.
#pragma once

#include <cstdint>

#include "faro/cancellation.h"
#include "faro/nodes.h"
#include "faro/status.h"
#include "faro/wait.h"
#include "session/membership.h"
#include "shuffle/query/query_table.h"

namespace faro::node {

/// Threads: any.
class NodeChanges {
 public:
  /// All outlive it.
  NodeChanges(session::Membership& membership, shuffle::QueryTable& queries)
      : membership_(membership), queries_(queries) {}

  /// They do what Nodes::add, drain and remove say.
  Status add(const NodeSpec& node);
  Status drain(uint32_t node);
  Status remove(uint32_t node);
  /// Does what Session::await_node says.
  Status await(uint32_t node, Wait wait, const Cancellation& cancellation);
  /// Those that somebody waits for are still wanted.
  void on_tick();

 private:
  session::Membership& membership_;
  shuffle::QueryTable& queries_;
};

}  // namespace faro::node
