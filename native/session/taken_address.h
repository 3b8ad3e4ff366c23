// Who listens where this node wanted to.
#pragma once

#include "base/settings.h"
#include "faro/status.h"

namespace faro::session {

/// Introduces this node to whoever listens at its own entry of cluster.nodes. If that is a process
/// with the same number in the same cluster (the likeliest mistake: one cluster.node for two
/// processes), it ends its open as well, with the same reason; a cluster that is open goes on.
///
/// `taken`: why this node cannot listen. Returns it, with what the other one answers.
/// Blocks: at most 2 s, if the other one is no Faro node.
Status ask_who_listens(const base::Settings& settings, const Status& taken);

}  // namespace faro::session
