// Finds out which process listens at this node's own address.
#pragma once

#include "base/settings.h"
#include "faro/status.h"

namespace faro::session {

/// Introduces this node to the process that listens at its own entry of cluster.nodes. The most likely mistake is
/// that two processes have the same cluster.node. Then the other process ends its open as well, with the same
/// reason, unless its session is already open.
///
/// `taken`: why this node cannot listen. Returns it, with the other process's answer.
/// Blocks: at most 2 s, if the other process is not a Faro node.
Status ask_who_listens(const base::Settings& settings, const Status& taken);

}  // namespace faro::session
